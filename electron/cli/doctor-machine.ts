import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { discoverCards } from '../core/devices/discovery.ts';
import type { CardFacts } from '../core/devices/reader.ts';
import { machineTree } from '../core/devices/sysfs.ts';
import { type KernelLogAccess, kernelLogAccess } from '../core/kernel-log/access.ts';
import { parseSettings } from '../core/settings/parse-settings.ts';
import { resolvePaths } from '../core/state-dir/paths.ts';
import type { Invocation } from './arguments.ts';
import type { DoctorCheck, DoctorSection } from './run-doctor.ts';
import { UNIT_NAME } from './service-unit.ts';

const ASK_LIMIT_MS = 3_000;

/** The cards, the kernel's log, the tray and the service. Wakes no card and starts nothing. */
export async function doctorMachine(invocation: Invocation): Promise<DoctorSection> {
  const { configFile } = resolvePaths({
    env: process.env,
    home: homedir(),
    cwd: process.cwd(),
    config: invocation.text('config') ?? undefined,
  });
  const text = await readFile(configFile, 'utf8').catch(() => '');
  const settings = parseSettings(text, configFile, homedir());
  const isOff = settings.ok && settings.value.kernelLog === 'off';
  const [access, tray, service] = await Promise.all([
    isOff ? ('off' as const) : kernelLogAccess(),
    ask('busctl', ['--user', 'call', ...BUS, 'NameHasOwner', 's', 'org.kde.StatusNotifierWatcher']),
    ask('systemctl', ['--user', 'is-active', UNIT_NAME]),
  ]);
  return {
    title: 'Machine',
    checks: [
      ...cardChecks(discoverCards(machineTree), (path) => machineTree.readText(path)),
      kernelLogCheck(access, process.env.USER ?? null),
      trayCheck(tray),
      serviceCheck(service),
    ],
  };
}

const BUS = ['org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus'];

/** What the machine computes on. `readText`: of sysfs; power state is read there without waking a card. */
export function cardChecks(
  cards: readonly CardFacts[],
  readText: (path: string) => string | null,
): readonly DoctorCheck[] {
  if (cards.length === 0) {
    const detail = ['no card that models run on: the system’s own memory is guarded instead.'];
    return [{ name: 'cards', outcome: 'skipped', detail }];
  }
  return cards.map((card) => {
    const device = card.path.includes('/drm/') ? `${card.path}/device` : card.path;
    const sleeps = readText(`${device}/power/runtime_status`)?.trim() === 'suspended';
    const memory = card.memory === 'unified' ? 'shares the system’s memory' : 'has memory of its own';
    const display =
      card.drivesDisplay === null
        ? 'whether it drives a display is not known'
        : card.drivesDisplay
          ? 'drives a display'
          : 'drives no display';
    return {
      name: card.name,
      outcome: 'ok',
      detail: [
        `${card.pciAddress === '' ? card.kind : card.pciAddress}: ${memory}, ${display}.`,
        ...(sleeps ? ['it sleeps to save power, and is not read until something else wakes it.'] : []),
      ],
    };
  });
}

/** `off`: the config says so. */
export function kernelLogCheck(access: KernelLogAccess | 'off', user: string | null): DoctorCheck {
  const name = 'kernel log';
  switch (access) {
    case 'journal':
      return { name, outcome: 'ok', detail: ['trouble of the driver is read from the journal.'] };
    case 'kmsg':
      return { name, outcome: 'ok', detail: ['trouble of the driver is read from /dev/kmsg.'] };
    case 'off':
      return { name, outcome: 'skipped', detail: ['it is not read: the config says kernelLog: off.'] };
    case null:
      return {
        name,
        outcome: 'skipped',
        detail: [
          'this user may not read it, so that trouble of the graphics driver is not told.',
          `to allow it: \`sudo usermod -aG systemd-journal ${user ?? '$USER'}\` (adm does too, where there is such a group), and log in anew.`,
        ],
      };
  }
}

/** `answer`: of the session bus, whether somebody shows tray icons. */
export function trayCheck(answer: string | null): DoctorCheck {
  const name = 'tray';
  if (answer === null)
    return {
      name,
      outcome: 'skipped',
      detail: ['there is no session bus to ask here (no desktop session).'],
    };
  return /\btrue\b/.test(answer)
    ? { name, outcome: 'ok', detail: ['this desktop shows tray icons.'] }
    : {
        name,
        outcome: 'skipped',
        detail: [
          'nothing shows tray icons here: the window is the way to the app.',
          'GNOME needs its AppIndicator extension for them.',
        ],
      };
}

function serviceCheck(answer: string | null): DoctorCheck {
  const name = 'service';
  if (answer === null)
    return { name, outcome: 'skipped', detail: ['there is no systemd session to ask here.'] };
  return answer.trim() === 'active'
    ? { name, outcome: 'ok', detail: [`${UNIT_NAME} runs.`] }
    : {
        name,
        outcome: answer.trim() === 'failed' ? 'failed' : 'skipped',
        detail: [
          answer.trim() === 'failed'
            ? `${UNIT_NAME} has failed: \`journalctl --user -u ${UNIT_NAME}\` says why.`
            : 'it does not run as a service; `landlord service install` lets it start with your session.',
        ],
      };
}

/** What a program prints, whatever its exit code; null where it can't be run or says nothing. */
function ask(command: string, args: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(command, [...args], { timeout: ASK_LIMIT_MS }, (_, out) => resolve(out === '' ? null : out));
  });
}
