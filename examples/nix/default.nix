# wheelslim, its setup hook, and PyTorch slimmed with it:
#
#   nix-build examples/nix -A torch --argstr arch sm_86
{ pkgs ? import <nixpkgs> { config.allowUnfree = true; }
, arch ? "sm_86"
}:

let
  inherit (pkgs) lib python3Packages;
in
rec {
  wheelslim = python3Packages.buildPythonApplication {
    pname = "wheelslim";
    version = "0.1.0";
    pyproject = true;
    src = lib.cleanSource ../..;
    build-system = [ python3Packages.hatchling ];
    dependencies = with python3Packages; [
      isal
      lz4
      packaging
      rich
      tqdm
      typer
      zlib-ng
      zstandard
    ];
    doCheck = false;
    pythonImportsCheck = [ "wheelslim" ];
  };

  hook = pkgs.makeSetupHook {
    name = "wheelslim-hook";
    propagatedBuildInputs = [ wheelslim ];
  } ./wheelslim-hook.sh;

  # For any package: slim pkg "sm_86".
  slim = pkg: devices: pkg.overrideAttrs (old: {
    nativeBuildInputs = (old.nativeBuildInputs or [ ]) ++ [ hook ];
    wheelslimArch = devices;
  });

  # torch-bin is PyTorch's own wheel, which carries code for every device.
  torch = slim python3Packages.torch-bin arch;

  # For a configuration: nixpkgs.overlays = [ (import ./examples/nix { }).overlay ];
  overlay = _final: previous: {
    python3 = previous.python3.override {
      packageOverrides = _self: super: {
        torch-bin = slim super.torch-bin arch;
      };
    };
  };
}
