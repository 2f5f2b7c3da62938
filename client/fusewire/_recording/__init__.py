"""Records ops, until they are sent."""

from fusewire._recording.compiled_modules import MODULES, import_compiled

import_compiled(*MODULES)
