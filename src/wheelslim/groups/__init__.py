"""File groups that can be left out besides device code, such as headers and static libraries."""
