# shellcheck shell=bash
# A setup hook: slims every output in the fixup phase of a derivation that has wheelslim in nativeBuildInputs.
#
#   wheelslimArch = "sm_86";        the devices to keep; nothing happens without it
#   wheelslimFlags = [ "--strip" ]; more options of `wheelslim env`
#   dontWheelslim = true;           switches the hook off
#
# fixupPhase calls it for each output with $prefix set, when the output is still writable. Files keep their
# modes, and nothing of the run (dates, paths) gets into them: the same input gives the same output.

wheelslimFixup() {
    if [ -n "${dontWheelslim-}" ] || [ -z "${wheelslimArch-}" ]; then
        return 0
    fi
    local flags=()
    read -ra flags <<< "${wheelslimFlags-}"
    # shellcheck disable=SC2154 # stdenv sets prefix.
    echo "wheelslim: slimming $prefix for $wheelslimArch"
    local code=0
    wheelslim env --arch "$wheelslimArch" "${flags[@]}" "$prefix" || code=$?
    # 4: no library of this output supports the device, as in an output of documentation alone it is no error.
    if [ "$code" -ne 0 ] && { [ "$code" -ne 4 ] || [ -n "${wheelslimStrict-}" ]; }; then
        return "$code"
    fi
}

fixupOutputHooks+=(wheelslimFixup)
