# SPDX-License-Identifier: Apache-2.0
"""A browser page in which the whole robot moves, and from which permitted users operate it.

Needs no screen and no ROS. Every joint of the tree is set from `joint_states`, passive ones included, so the picture
shows the loops closed as the solver closed them. Controls are made for each browser that may command, and for no other:
see `admission.py` and `operations.py`. Those of the drives' power exist before all others, which need kernels.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from viser._messages import RunJavascriptMessage

from pkm_control.operator_interface import Answer
from pkm_description.joint_geometry import home_positions
from pkm_description.mechanism import Array, Mechanism
from pkm_description.picture import link_poses
from pkm_viewer.jog_space import JogSpace
from pkm_viewer.layers import Layers
from pkm_viewer.operations import IDLE, Operations, Readings
from pkm_viewer.page_server import THIS_COMPUTER, PageServer
from pkm_viewer.panels import markup
from pkm_viewer.panels.asking import PageRequests
from pkm_viewer.panels.capture import Capture
from pkm_viewer.panels.distance_bars import LimitsPanel
from pkm_viewer.panels.jog_panel import JogPanel, handle_ends
from pkm_viewer.panels.joints import JointsPanel
from pkm_viewer.panels.open_pages import OpenPages
from pkm_viewer.panels.plots import PlotsPanel
from pkm_viewer.panels.power import PowerPanel
from pkm_viewer.panels.record import RecordPanel
from pkm_viewer.panels.run import RunPanel
from pkm_viewer.panels.situation import StatusPanel
from pkm_viewer.scene import Scene

_TEXTS_EVERY, _PLOTS_EVERY = 0.2, 0.4  # s
_UNSEEN_EVERY = 1.0  # s, between two pictures that no browser shows
_ORDER = {"status": 0.0, "pages": 0.3, "power": 0.5, "run": 1.0, "jog": 2.0, "record": 3.0, "layers": 4.0}
_WIDTH, _WIDTH_MEASURED = 320, 310  # pixels
_WATCHES = "This browser may watch. Commands are taken from others: see the argument operate."
_TAKES_JOGS = (*IDLE, "")  # modes in which there are handles: while a motion runs they would trail behind, of no use
_FOLD_SHEET = """(() => {
  if (window.sheetWasFolded) return;  // a page that connects anew stays as it is
  window.sheetWasFolded = true;
  const narrow = matchMedia("(max-width: 36em)");  // where viser makes a sheet of its panels
  const fold = tries => {
    if (!narrow.matches) return;
    const sheet = document.querySelector('div[style*="position: fixed"][style*="max-height: 60%"]');
    if (sheet) sheet.querySelector('[style*="cursor: pointer"]').click();
    else if (tries) setTimeout(fold, 50, tries - 1);
  };
  fold(100);
  narrow.addEventListener("change", () => fold(100));
})()"""  # viser's starts unfolded, over the lower part of the robot's picture
_STANDS = ("HOLDING", "TRACKING", "PAUSED", "STOPPED", "WAITING", "")  # modes in which the handles follow the robot


class RobotViewer:
    """Serves the page at `url` from construction until `close`; `left_out` says which visuals cannot be drawn.

    Args:
        initial: joint positions by name [rad or m] to begin with, which also give the size of the robot.
        planned: positions of the platform (n, 3) [m] on the motion's path, base frame.
        host: address to listen on; this computer alone by default. `port` is the first one tried.
        operate: who may command, once `operate` was called; see `PageServer`, also for errors.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        port: int = 8080,
        initial: Mapping[str, float] | None = None,
        planned: Array | None = None,
        host: str = THIS_COMPUTER,
        operate: str = "nobody",
    ) -> None:
        logging.getLogger("websockets").setLevel(logging.ERROR)
        self._mechanism = mechanism
        self.server = PageServer(host, port, mechanism.name, operate)
        home = home_positions(mechanism)
        self._column = {name: k for k, name in enumerate(home)}
        self._joints = np.array(list(home.values()))
        self._actuated = [self._column[name] for name in mechanism.actuated_joints]
        self._index: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._readings = Readings()
        self._next_texts = self._next_plots = self._next_unseen = 0.0  # s, monotonic
        self._desk: PageRequests | None = None
        self._space: JogSpace | None = None
        self._pages: OpenPages | None = None
        self._modes: tuple[Sequence[str], str] = ((), "")
        self._power: dict[int, PowerPanel] = {}
        self._controls: dict[int, tuple[RunPanel, JogPanel]] = {}
        self._lock = threading.Lock()  # of the controls, which browsers come to and leave
        self.updates = 0
        self.scene = Scene(self.server, mechanism)
        self.capture = Capture(mechanism, tuple(home))
        self._arrange()
        if initial:
            self.update(list(initial), np.array(list(initial.values())))
        if planned is not None:
            self.show_planned(planned)

    def _arrange(self) -> None:
        """Make what everybody sees."""
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(21, 101, 192))
        gui.main_panel.dock_right()
        gui.main_panel.set_width(_WIDTH)
        gui._websock_interface.queue_message(RunJavascriptMessage(source=_FOLD_SHEET))
        self.status = StatusPanel(self.server, self._mechanism, _ORDER["status"])
        measured = gui.add_panel()
        with measured.add_tab("Measured"):
            self.limits = LimitsPanel(self.server, self._mechanism)
            self.plots = PlotsPanel(self.server, self._mechanism)
            self.joints = JointsPanel(self.server, self._mechanism)
        measured.dock_left()
        measured.set_width(_WIDTH_MEASURED)

    @property
    def url(self) -> str:
        """Address of the page."""
        return self.server.url

    @property
    def left_out(self) -> list[str]:
        """What cannot be drawn, and why."""
        return self.scene.left_out

    def show_layers(self, files: Iterable[Path]) -> list[str]:
        """Show surfaces of .glb files that `pkm analyse` wrote, each with a switch; what cannot be shown, and why."""
        with self.server.gui.add_folder("Layers", order=_ORDER["layers"], expand_by_default=False):
            self.layers = Layers(self.server, files)
        return self.layers.left_out

    # What is shown

    def look(self, joint_names: Sequence[str], positions: Array, readings: Readings) -> None:
        """Take readings: `update` and `show` where a browser shows them, and now and then where none does. `positions`
        (n,) [rad or m] are those of `joint_names`; other robots' joints and what is not finite are left out.
        """
        now = time.monotonic()
        if now >= self._next_unseen or self.capture.running or self.server.get_clients():
            self._next_unseen = now + _UNSEEN_EVERY
            self.update(joint_names, positions, readings.pose)
            self.show(readings)
        else:  # drawing costs a sixth of a core, which a control loop beside it may need
            self.scene.pass_by(readings.pose)
            self.plots.take(readings)

    def update(self, joint_names: Sequence[str], positions: Array, platform_pose: Array | None = None) -> None:
        """Show joint positions (n,) [rad or m], and add the platform's pose (7,), base frame, to its trail.
        Joints of other robots and what is not finite are left out.
        """
        key = tuple(joint_names)
        if key not in self._index:
            pairs = [(i, self._column[name]) for i, name in enumerate(key) if name in self._column]
            sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
            self._index = {key: (np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))}
        source, target = self._index[key]
        values = np.asarray(positions, dtype=np.float64)[source]
        good = np.isfinite(values)
        self._joints[target[good]] = values[good]
        with self.server.atomic():
            self.scene.show(link_poses(self._mechanism, self._joints))
            self.scene.pass_by(platform_pose)
            self.scene.draw_trail()
        self.updates += 1

    def show(self, readings: Readings) -> None:
        """Show the other readings; call it after `update`. Texts and plots follow at a readable rate."""
        self._readings = readings
        self.plots.take(readings)
        self.capture.take(readings, self._joints)
        now = time.monotonic()
        if now >= self._next_texts:
            self._next_texts = now + _TEXTS_EVERY
            self.status.show(readings)
            self.limits.show(readings, self._joints[self._actuated])
            self.joints.show(dict(zip(self._column, self._joints.tolist(), strict=True)))
            self._show_controls(readings)
        if now >= self._next_plots:
            self._next_plots = now + _PLOTS_EVERY
            self.plots.draw()

    def show_planned(self, positions: Array) -> None:
        """Draw the path (n, 3) [m] that the platform is to take; none for fewer than two points."""
        self.scene.show_planned(positions)

    def warn(self, faults: str) -> None:
        """Show faults on a red ground above all else; an empty text removes them."""
        self.status.warn(faults)

    def show_modes(self, labels: Sequence[str], present: str) -> None:
        """Offer working modes by their labels; `present` is the robot's."""
        self._modes = labels, present
        for run, _ in self._panels():
            run.show_modes(labels, present)

    def close(self) -> None:
        """Stop serving the page."""
        self.server.stop()

    # Who may command

    def attend(self, operations: Operations) -> None:
        """Give the browsers that may command the power of the drives."""
        self._desk = PageRequests(self.server, operations, self.status.answer)
        self._pages = OpenPages(self._desk, _ORDER["pages"])
        self.status.make_room()
        self.server.on_client_connect(self._on_connect)
        self.server.on_client_disconnect(self._on_disconnect)

    def operate(self, operations: Operations, space: JogSpace) -> None:
        """Give all controls to the browsers that may command."""
        home = space.kinematics.singularity(space.kinematics.home)
        of_home = (home.type1, home.type2, home.constraint_hold, home.limb_regularity)
        self.limits.compare_with(tuple(float(distance) for distance in of_home))
        if self._desk is None:
            self.attend(operations)
        self._space = space
        self._seed = [self._column[name] for name in space.kinematics.joint_names]
        self.server.on_client_connect(self._welcome)

    def _on_connect(self, client: Any) -> None:
        if self._desk is None or self._pages is None:
            return
        operates = self.server.may_operate(client.client_id)
        with self._lock:
            self._pages.on_connect(client, operates)
        if not operates:
            client.gui.add_html(markup.block(_WATCHES), order=_ORDER["run"])
            return
        power = PowerPanel(client, self._desk, _ORDER["power"])
        with self._lock:
            self._power[client.client_id] = power

    def _welcome(self, client: Any) -> None:
        if self._desk is None or self._space is None or not self.server.may_operate(client.client_id):
            return
        run = RunPanel(client, self._desk, _ORDER["run"])
        jog = JogPanel(client, self._desk, self._space, self._seeds, self.scene.size, _ORDER["jog"])
        self.scene.hold_in_view(handle_ends(self._space, self.scene.size))
        RecordPanel(client, self._desk, self.capture, f"{self._mechanism.name}.csv", _ORDER["record"])
        run.show_modes(*self._modes)
        with self._lock:
            self._controls[client.client_id] = (run, jog)

    def _on_disconnect(self, client: Any) -> None:
        with self._lock:
            self._controls.pop(client.client_id, None)
            self._power.pop(client.client_id, None)
            if self._pages is not None:
                self._pages.on_disconnect(client)

    def _seeds(self) -> Array:
        """Joint positions of the kinematics."""
        return self._joints[self._seed]

    def _panels(self) -> list[tuple[RunPanel, JogPanel]]:
        with self._lock:
            return list(self._controls.values())

    def _show_controls(self, readings: Readings) -> None:
        if self._pages is not None:
            with self._lock:
                self._pages.draw()
                powers = list(self._power.values())
            for power in powers:
                with contextlib.suppress(KeyError):  # a browser that leaves meanwhile
                    power.show(readings)
        for run, jog in self._panels():
            with contextlib.suppress(KeyError):
                run.show(readings)
                jog.let(readings.mode in _TAKES_JOGS)
                if readings.pose is not None and readings.mode in _STANDS:
                    jog.follow(readings.pose, self._seeds())

    def tell(self, answer: Answer) -> None:
        """Show everybody a text."""
        self.status.answer(answer)
