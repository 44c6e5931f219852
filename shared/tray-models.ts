/** The models in the tray's menu: how much each holds, and what can be done about it. Pure. */
import type { LandlordEvent } from './events.ts';
import type { LandlordState, ModelState } from './state.ts';
import { isBusy, shortModel } from './tray-agents.ts';
import { type Ask, item, type MenuEntry, submenu, type TrayAction } from './tray-entry.ts';
import { clockText, heldBytes, plainBytes } from './tray-lines.ts';

/** More models than this on one card are scrolled through in the window. */
const MOST_UNLOADED = 25;

const ORDER: Readonly<Record<ModelState['status'], number>> = {
  loading: 0,
  stopping: 1,
  loaded: 2,
  failed: 3,
  sleeping: 4,
  unloaded: 5,
};

export function modelEntries(state: Pick<LandlordState, 'models'>): readonly MenuEntry[] {
  const name = namesOf(state.models);
  const sorted = [...state.models].sort(
    (a, b) => ORDER[a.status] - ORDER[b.status] || (a.id < b.id ? -1 : 1),
  );
  const present = sorted.filter((model) => model.status !== 'unloaded');
  const away = sorted.filter((model) => model.status === 'unloaded');
  const entries = present.map((model) => modelEntry(model, name(model)));
  if (away.length === 0) return entries;
  const shown = away.slice(0, MOST_UNLOADED).map((model) => modelEntry(model, name(model)));
  if (away.length > MOST_UNLOADED) {
    const more = `${away.length - MOST_UNLOADED} more in the window`;
    shown.push(item('more-models', more, { type: 'open', place: { kind: 'home' } }));
  }
  return [...entries, submenu('unloaded', `Not loaded (${away.length})`, shown)];
}

/** The short name, with its backend where two have the same one. */
function namesOf(models: readonly ModelState[]): (model: ModelState) => string {
  const count = new Map<string, number>();
  for (const { id } of models) count.set(shortModel(id), (count.get(shortModel(id)) ?? 0) + 1);
  return ({ id }) => ((count.get(shortModel(id)) ?? 0) > 1 ? id : shortModel(id));
}

function modelEntry(model: ModelState, name: string): MenuEntry {
  const size = sizeOf(model);
  const parts = [name, ...(size === null ? [] : [size]), statusOf(model)];
  if (model.pinned) parts.push('kept');
  const label = model.status === 'unloaded' ? parts.filter((part) => part !== 'not loaded') : parts;
  return submenu(`model ${model.id}`, label.join(', '), [...deed(model, name), keep(model)]);
}

function sizeOf(model: ModelState): string | null {
  if (model.measuredBytes !== null && model.status !== 'loading') return heldBytes(model.measuredBytes);
  return model.predictedBytes === null ? null : `about ${plainBytes(model.predictedBytes)}`;
}

function statusOf(model: ModelState): string {
  switch (model.status) {
    case 'loaded':
      return model.busy === null ? 'loaded' : model.busy ? 'busy' : 'idle';
    case 'stopping':
      return 'leaving';
    case 'sleeping':
      return 'asleep';
    case 'unloaded':
      return 'not loaded';
    case 'loading':
    case 'failed':
      return model.status;
  }
}

function deed(model: ModelState, name: string): readonly MenuEntry[] {
  switch (model.status) {
    case 'unloaded':
    case 'failed':
      return [item(`load ${model.id}`, 'Load', loadAction(model.id))];
    case 'loading':
      return [item(`cancel ${model.id}`, 'Cancel loading', unloadAction(model.id, false, null))];
    case 'loaded':
    case 'sleeping': {
      const ask = askBeforeUnload(model, name);
      const label = ask === null ? 'Unload' : 'Unload …';
      return [item(`unload ${model.id}`, label, unloadAction(model.id, ask !== null, ask))];
    }
    case 'stopping':
      return [item(`leaving ${model.id}`, 'Leaving …')];
  }
}

function keep(model: ModelState): MenuEntry {
  return {
    kind: 'check',
    id: `keep ${model.id}`,
    label: 'Keep: the guards never unload it',
    checked: model.pinned,
    action: pinAction(model.id, !model.pinned),
  };
}

/** What can't be told is not taken for idle. */
function askBeforeUnload(model: ModelState, name: string): Ask | null {
  if (model.status === 'sleeping' || model.busy === false) return null;
  return {
    question: `Unload ${name}?`,
    detail: isBusy(model)
      ? `${name} is answering a request. Unloading it now cuts that request off.`
      : `Whether ${name} is answering a request can't be told. If it is, unloading it cuts that off.`,
    confirm: 'Unload',
  };
}

function loadAction(model: string): TrayAction {
  return { type: 'command', command: { type: 'load', model, force: false }, ask: null };
}

function unloadAction(model: string, force: boolean, ask: Ask | null): TrayAction {
  return { type: 'command', command: { type: 'unload', model, force }, ask };
}

function pinAction(model: string, pinned: boolean): TrayAction {
  return { type: 'command', command: { type: pinned ? 'pin' : 'unpin', model }, ask: null };
}

/** Whether an event is a model's leaving, which a load can undo; an agent's context comes back with its turn. */
export function isEviction(event: LandlordEvent): boolean {
  const left = event.kind === 'evicted' || event.kind === 'killed';
  return left && event.model !== undefined && event.session === undefined;
}

/** What left last, and how to have it back; nothing where no model was evicted or is known any more. */
export function lastEvictionEntry(
  event: LandlordEvent | null,
  state: Pick<LandlordState, 'models'>,
  nowMs: number,
): readonly MenuEntry[] {
  const model = state.models.find((one) => one.id === event?.model);
  if (event === null || model === undefined) return [];
  const away = model.status === 'unloaded' || model.status === 'failed';
  return [
    submenu('last-eviction', `Last eviction: ${shortModel(model.id)}, ${clockText(event.at, nowMs)}`, [
      item('last-eviction-load', away ? 'Load again' : 'It is back', away ? loadAction(model.id) : null),
      { ...keep(model), id: 'last-eviction-keep' },
      item('last-eviction-why', 'Why it left …', { type: 'open', place: { kind: 'event', id: event.id } }),
    ]),
  ];
}
