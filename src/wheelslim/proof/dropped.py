"""Device code in files of its own that the slimmed artifact lacks, although a target could run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wheelslim.archive.artifact import MemberType
from wheelslim.contents import ContentKind, content_kind
from wheelslim.inspection import cubin_image
from wheelslim.loose.decision import decide
from wheelslim.plan import Request
from wheelslim.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wheelslim.architecture import ComputeCapability
    from wheelslim.archive.artifact import Member
    from wheelslim.archive.opener import AnyArtifact
    from wheelslim.loose.image import LooseImage
    from wheelslim.proof.listing import Listing


def dropped_device_code(
    before: AnyArtifact, listing: Listing, devices: Sequence[ComputeCapability]
) -> Iterator[str]:
    """Say which cubins are gone that an application could have loaded on one of ``devices``.

    They may have been dropped on purpose (``--drop-glob``), so this breaks no promise by itself.
    """
    gone = {name for name, member in listing.before.items() if member.type is MemberType.FILE}
    gone -= listing.after.keys()
    if not gone:
        return
    images: list[LooseImage] = []

    def look(member: Member, head: bytes) -> bool:
        if content_kind(member.name, head) is ContentKind.CUBIN:
            images.append(cubin_image(member.name, member.size, head))
        return False

    for _ in before.walk(look):
        pass
    request = Request(tuple(Target(device) for device in devices))
    lost = sorted(gone & decide(images, request).kept.keys())
    if lost:
        more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
        yield f"{lost[0]}{more} could run on a target and is gone: dropped on purpose?"
