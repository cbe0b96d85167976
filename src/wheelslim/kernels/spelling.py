"""Spellings of one kernel's name: mangled, demangled, and a form that demanglers agree on.

Profilers do not spell names alike. The PyTorch profiler demangles as libstdc++ does, Nsight Systems
in NVIDIA's own way; they differ in spaces, casts, lambdas, parameters and inner return types
(measured on the 23,021 names of PyTorch's kernels).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ANONYMOUS = "$anonymous"
"""What the anonymous namespace is called here, which each demangler spells in its own way."""

_PARAMETERS = "\x01"
_TEMPLATE = "\x02"

_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}")
_INTERNAL = re.compile(r"\b_INTERNAL_[0-9a-f]{8}_\w+?_[0-9a-f]{8}::")
_CALL = re.compile(r"\boperator ?\(\)")
_OPERATOR = re.compile(r"\boperator ?(<=>|<<=?|>>=?|->\*?|<=|>=|<|>)(?=[\s(<]|$)")
_CAST = re.compile(r"(?<![\w$>])\([\w:$ ]+\)(?=-?\d)")
_PARENTHESES = re.compile(r"\([^()]*\)")
_NVIDIA_LAMBDA = re.compile(rf"\[lambda\s*{_PARAMETERS} {_PARAMETERS}\]")
_LAMBDA = re.compile(rf"'lambda\d*'{_PARAMETERS}|\{{lambda{_PARAMETERS}#\d+\}}")
_QUALIFIERS = re.compile(r"\b(?:const|volatile)\b|&")
_SPACES = re.compile(r"\s*([^\w$\s])\s*|\s+(?=\s)|^\s+|\s+$")
_EMPTY = re.compile(r",(?=>)|(?<=<),")
_NUMBER = re.compile(r"\b(\d+)u?l{1,2}\b|\b(\d+)u\b")
_BOOLEAN = re.compile(r"\b(?:true|false)\b")
_RETURN_TYPE = re.compile(
    rf"(?:^|(?<=[<,]))(?:(?:unsigned|signed) )?[\w:$]+ (?=[\w$]+(?:::|[<{_PARAMETERS}]))"
)
_ARGUMENTS = re.compile(r"<[^<>]*>")
_TEMPLATE_RETURN_TYPE = re.compile(rf"(?:^|(?<=[<,]))[\w:$]+{_TEMPLATE}\d+{_TEMPLATE}(?=[\w$])")
_HELD = re.compile(rf"{_TEMPLATE}(\d+){_TEMPLATE}")
_LEAF = re.compile(r"([A-Za-z_]\w*)[<(]")
_NESTED = re.compile(r"_ZN?")
_LENGTH = re.compile(r"\d{1,4}")


def demangle(names: Sequence[str]) -> list[str]:
    """Demangle; a name that is not mangled, or is longer than 4,096 characters then, stays as it is."""
    import multi_demangle

    return list(multi_demangle.demangle_symbols(names, language="cpp"))


def signature(name: str) -> str:
    """Return the qualified name with its template arguments, in a form that demanglers agree on.

    Parameters, return types, qualifiers and the numbers of lambdas are left out, so that a few
    kernels of one source file share a signature. A mangled name comes back as it is.
    """
    if name.startswith("_Z"):
        return name
    text = _unified(name)
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        # The innermost arguments come first, so a return type in front of a name is seen at its level.
        held.append("<" + _RETURN_TYPE.sub("", _TEMPLATE_RETURN_TYPE.sub("", found[0]))[1:])
        return f"{_TEMPLATE}{len(held) - 1}{_TEMPLATE}"

    before = ""
    while before != text:
        before, text = text, _ARGUMENTS.sub(hold, text)
    text = _RETURN_TYPE.sub("", _TEMPLATE_RETURN_TYPE.sub("", text))
    while _TEMPLATE in text:
        text = _HELD.sub(lambda found: held[int(found[1])], text)
    return text.replace(_PARAMETERS, "")


def base_name(name: str) -> str:
    """Return the qualified name without template arguments: ``at::native::reduce_kernel``.

    Of a mangled name it is what its leading source names say.
    """
    if name.startswith("_Z"):
        return _mangled_base(name)
    text = _unified(name)
    before = ""
    while before != text:
        before, text = text, _ARGUMENTS.sub(_TEMPLATE, text)
    text = re.sub(rf"^(?:(?:un)?signed )?[\w:$]+(?: |{_TEMPLATE}(?=[\w$]))", "", text.rstrip(_PARAMETERS))
    return text.replace(_PARAMETERS, "").replace(_TEMPLATE, "")


def leaf(name: str) -> str:
    """Return a part of ``name`` that is quick to find and alike in all spellings: the last source name."""
    if name.startswith("_Z"):
        return _mangled_base(name).rsplit("::", 1)[-1]
    found = _LEAF.search(_ANONYMOUS.sub("", name))
    return found[1] if found else name


def _unified(name: str) -> str:
    """Rewrite what demanglers spell differently without a look at the nesting of templates."""
    name = name.replace(_PARAMETERS, "").replace(_TEMPLATE, "")
    name = _INTERNAL.sub("", _ANONYMOUS.sub(ANONYMOUS, name))
    name = _CALL.sub("operator$call", name)
    name = _OPERATOR.sub(lambda found: "operator$" + found[1].encode().hex(), name)
    name = _CAST.sub("", name)
    before = ""
    while before != name:
        before, name = name, _PARENTHESES.sub(_PARAMETERS, name)
    name = _NVIDIA_LAMBDA.sub("$lambda", name)
    name = _LAMBDA.sub("$lambda", name)
    name = _QUALIFIERS.sub("", name)
    name = _EMPTY.sub("", _SPACES.sub(r"\1", name))
    name = _BOOLEAN.sub(lambda found: "1" if found[0] == "true" else "0", name)
    return _NUMBER.sub(r"\1\2", name)


def _mangled_base(name: str) -> str:
    """Read ``_ZN7cutlass13device_kernelI…`` up to what is no source name: ``cutlass::device_kernel``."""
    start = _NESTED.match(name)
    position = start.end() if start else 0
    parts = []
    while (found := _LENGTH.match(name, position)) is not None:
        position = found.end() + int(found[0])
        part = name[found.end() : position]
        if not part.startswith("_INTERNAL_"):
            parts.append(ANONYMOUS if part.startswith("_GLOBAL__N_") else part)
    return "::".join(parts) or name
