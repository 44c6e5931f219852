/**
 * The tray's picture, tooltip and menu, as a pure function of what is known. Equal inputs give equal
 * views, so that the tray is touched only where one differs.
 */
import type { AppSettings } from './app-settings.ts';
import type { LandlordEvent } from './events.ts';
import type { LinkState } from './ipc-schema.ts';
import type { BackendState, LandlordState } from './state.ts';
import { agentLines, shortModel } from './tray-agents.ts';
import { item, line, type MenuEntry, submenu } from './tray-entry.ts';
import { type TrayIcon, trayIcon } from './tray-icon.ts';
import { activityLines, clockText, deviceLine, type Figures, shownDevices } from './tray-lines.ts';
import { lastEvictionEntry, modelEntries } from './tray-models.ts';
import { settingsMenu } from './tray-settings.ts';

export interface TrayInput {
  /** null until the first one. Of a lost runtime: what was last known. */
  readonly state: LandlordState | null;
  readonly link: LinkState;
  /** Where programs send their requests, `http://127.0.0.1:7781/v1`; null: not known. */
  readonly baseUrl: string | null;
  readonly lastEviction: LandlordEvent | null;
  /** Why the machine is kept awake, or could not be; null: it may sleep. */
  readonly awake: string | null;
  readonly settings: AppSettings;
  /** null: the system has no such thing. */
  readonly startAtLogin: boolean | null;
  /** Readings from before this do not count (epoch ms): the machine was suspended since. null: never. */
  readonly resumedAtMs: number | null;
  readonly nowMs: number;
}

export interface TrayView {
  readonly icon: TrayIcon;
  readonly tooltip: string;
  readonly menu: readonly MenuEntry[];
}

const GB = 1_000_000_000;
const ROOMS = [8 * GB, 16 * GB] as const;
const PAUSE_MS = 15 * 60_000;
/** A server that loads its model first answers after that. */
const STARTS_WITHIN_MS = 3 * 60_000;

export function trayView(input: TrayInput): TrayView {
  const state = input.link.kind === 'lost' ? null : afterResume(input.state, input.resumedAtMs);
  return {
    icon: trayIcon(state),
    tooltip: ['VRAM Landlord', ...statusLines(input, state, 'exact')].join('\n'),
    menu: [
      item('show', 'Show VRAM Landlord', { type: 'open', place: { kind: 'home' } }),
      line('after-show'),
      ...statusLines(input, state, 'steps').map((text, at) => item(`status ${at}`, text)),
      ...(input.awake === null ? [] : [item('awake', input.awake)]),
      ...(state === null ? [] : runtimeEntries(input, state)),
      ...(input.link.kind === 'lost' ? [item('host', 'Run it in this app', { type: 'host' })] : []),
      line('before-app'),
      item('log', 'Show the log', { type: 'open', place: { kind: 'log' } }),
      ...(state === null ? [] : [guardsMenu(state, input.nowMs)]),
      ...(input.link.kind === 'lost' ? [] : [item('browse', 'Open in the browser', { type: 'browse' })]),
      settingsMenu(input.settings),
      ...loginEntry(input.startAtLogin),
      item('quit', quitLabel(input), { type: 'quit' }),
    ],
  };
}

/** The first lines: what is free and what is going on, or why that can't be told. */
function statusLines(input: TrayInput, state: LandlordState | null, figures: Figures): readonly string[] {
  if (input.link.kind === 'lost') return [input.link.message];
  if (state === null) return ['Starting …'];
  const devices = shownDevices(state);
  if (devices.length === 0) return ['No device has been read yet'];
  const lines = devices.map((device) => deviceLine(device, devices.length > 1, figures));
  return [
    ...lines,
    ...activityLines(state, input.nowMs, figures),
    ...agentLines(state),
    ...backendLines(state, input.nowMs),
    ...modeLines(state, input.nowMs),
  ];
}

function backendLines(state: LandlordState, nowMs: number): readonly string[] {
  return state.backends
    .filter((backend) => backend.status === 'down')
    .flatMap((backend) => whyDown(backend, nowMs) ?? []);
}

/** null: as it should be, for it is to start with its first use. */
function whyDown({ name, own }: BackendState, nowMs: number): string | null {
  const startedAtMs = own?.startedAt == null ? Number.NaN : Date.parse(own.startedAt);
  switch (own?.status) {
    case 'idle':
      return null;
    case 'starting':
    case 'running':
      return nowMs - startedAtMs > STARTS_WITHIN_MS
        ? `${name} does not answer`
        : `${name} has been started and does not answer yet`;
    case 'waiting':
      return `${name} has ended and is started again`;
    case 'taken':
      return `${name} can't start: another program has its port`;
    case 'stopped':
    case undefined:
      return `${name} does not answer`;
  }
}

/** What makes the guards do less than they would. */
function modeLines(state: LandlordState, nowMs: number): readonly string[] {
  const lines: string[] = [];
  const { asleep, policy } = state;
  if (asleep !== null) {
    const until = asleep.until === null ? 'until woken' : `until ${clockText(asleep.until, nowMs)}`;
    lines.push(`Big models asleep ${until}`);
  }
  if (policy.guards === 'paused') {
    const until = policy.guardsPausedUntil;
    lines.push(`Guards paused${until === null ? '' : ` until ${clockText(until, nowMs)}`}`);
  } else if (policy.guards === 'observe') lines.push('Guards only watch');
  return lines;
}

/** A reading from before a suspend is stale until the device is read anew. */
function afterResume(state: LandlordState | null, resumedAtMs: number | null): LandlordState | null {
  if (state === null || resumedAtMs === null) return state;
  const isOld = (sampledAt: string | null): boolean =>
    sampledAt === null || Date.parse(sampledAt) < resumedAtMs;
  if (!state.devices.some((device) => isOld(device.sampledAt))) return state;
  return {
    ...state,
    devices: state.devices.map((device) =>
      isOld(device.sampledAt) ? { ...device, health: 'stale' as const } : device,
    ),
  };
}

function runtimeEntries(input: TrayInput, state: LandlordState): readonly MenuEntry[] {
  const { baseUrl } = input;
  const models = modelEntries(state);
  return [
    line('before-url'),
    ...(baseUrl === null ? [] : [item('url', `Copy ${baseUrl}`, { type: 'copy', text: baseUrl })]),
    ...(models.length === 0 ? [] : [line('before-models'), ...models]),
    line('before-actions'),
    sleepMenu(state, input.nowMs),
    makeRoomMenu(state),
    ...bringBackEntry(state),
    ...offerEntries(state),
    ...lastEvictionEntry(input.lastEviction, state, input.nowMs),
  ];
}

function bringBackEntry(state: LandlordState): readonly MenuEntry[] {
  if (state.restorable.length === 0) return [];
  const label = `Bring back what left: ${state.restorable.map(shortModel).join(', ')}`;
  return [item('restore', label, { type: 'command', command: { type: 'restore' }, ask: null })];
}

/** What only a person does, each with its question. */
function offerEntries({ offers = [] }: LandlordState): readonly MenuEntry[] {
  return offers.map(({ id, label, question, text }) =>
    item(`offer ${id}`, `${label} …`, {
      type: 'command',
      command: { type: 'accept', offer: id },
      ask: { question, detail: text, confirm: label },
    }),
  );
}

/** One set of amounts; where there are several cards, one a card. */
function makeRoomMenu(state: LandlordState): MenuEntry {
  const devices = shownDevices(state);
  const rooms = (deviceId: string | null, totalBytes: number | null): readonly MenuEntry[] =>
    ROOMS.filter((bytes) => totalBytes === null || bytes < totalBytes).map((freeBytes) =>
      item(`room ${deviceId ?? ''} ${freeBytes}`, `${freeBytes / GB} GB`, {
        type: 'command',
        command: { type: 'makeRoom', freeBytes, deviceId },
        ask: null,
      }),
    );
  const amounts =
    devices.length > 1
      ? devices.map((device) =>
          submenu(`rooms ${device.id}`, device.name, rooms(device.id, device.totalBytes)),
        )
      : rooms(null, devices[0]?.totalBytes ?? null);
  return submenu('make-room', 'Make room', [
    ...amounts,
    item('room everything', 'Everything …', {
      type: 'command',
      command: { type: 'drain' },
      ask: {
        question: 'Unload every model?',
        detail:
          'Kept ones too. Busy models leave after their request, and nothing loads again until it is asked for. Agents keep what was said.',
        confirm: 'Unload all',
      },
    }),
  ]);
}

function sleepMenu(state: LandlordState, nowMs: number): MenuEntry {
  if (state.asleep !== null) {
    const { until } = state.asleep;
    const label =
      until === null ? 'Wake big models' : `Wake big models (asleep until ${clockText(until, nowMs)})`;
    return item('wake', label, { type: 'command', command: { type: 'wake' }, ask: null });
  }
  return submenu('sleep', 'Put big models to sleep', [
    item('sleep woken', 'Until woken', { type: 'sleep', until: 'woken' }),
    item('sleep hour', 'For 1 hour', { type: 'sleep', until: 'hour' }),
    item('sleep tomorrow', 'Until tomorrow', { type: 'sleep', until: 'tomorrow' }),
  ]);
}

function guardsMenu(state: LandlordState, nowMs: number): MenuEntry {
  const { guards, guardsPausedUntil } = state.policy;
  const choose = (mode: 'on' | 'observe' | 'pause', label: string, checked: boolean): MenuEntry => ({
    kind: 'radio',
    id: `guards ${mode}`,
    label,
    checked,
    action: {
      type: 'command',
      command: { type: 'guards', mode, forMs: mode === 'pause' ? PAUSE_MS : null, backend: null },
      ask: null,
    },
  });
  const until = guardsPausedUntil === null ? '' : ` until ${clockText(guardsPausedUntil, nowMs)}`;
  return submenu('guards', 'Guards', [
    choose('on', 'On', guards === 'on'),
    choose('observe', 'Only watch', guards === 'observe'),
    choose('pause', guards === 'paused' ? `Paused${until}` : 'Pause for 15 minutes', guards === 'paused'),
  ]);
}

function loginEntry(on: boolean | null): readonly MenuEntry[] {
  if (on === null) return [];
  return [
    {
      kind: 'check',
      id: 'login',
      label: 'Start at login',
      checked: on,
      action: { type: 'startAtLogin', on: !on },
    },
  ];
}

/** Quitting the app ends the guards only where it hosts them. */
function quitLabel({ link }: TrayInput): string {
  return link.kind === 'attached' ? 'Quit (the runtime goes on)' : 'Quit';
}
