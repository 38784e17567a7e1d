"""The modes. Each module has those of one kind; importing them is what makes them known, in the table's order."""

from tests.spark_table.modes import windows as windows  # isort: skip
from tests.spark_table.modes import joins as joins  # isort: skip
from tests.spark_table.modes import keyed_state as keyed_state  # isort: skip
from tests.spark_table.modes import stores as stores  # isort: skip
from tests.spark_table.modes import sinks as sinks  # isort: skip
from tests.spark_table.modes import lakes as lakes  # isort: skip
from tests.spark_table.scene import MODES as MODES
