import { formatBytes, formatDuration, formatPercent } from '../../shared/format.ts';
import type { ModelState, ModelStatus } from '../../shared/state.ts';
import { columns, paint, plain, type Terminal, type Tone } from './terminal.ts';

const TONES: Readonly<Partial<Record<ModelStatus, Tone>>> = {
  loaded: 'good',
  loading: 'warning',
  stopping: 'warning',
  failed: 'bad',
};

/** One line a model: name, status, memory (`~` is predicted), and why it is as it is. */
export function modelLines(
  models: readonly ModelState[],
  nowMs: number,
  look: Pick<Terminal, 'color'>,
): string[] {
  const rows = models.map((model) => {
    const tone = TONES[model.status];
    const status = statusText(model);
    return [
      plain(model.id),
      tone === undefined ? status : paint(look, tone, status),
      memoryText(model),
      plain(whyText(model, nowMs)),
    ];
  });
  return columns(rows, [2]);
}

function statusText(model: ModelState): string {
  if (model.status === 'loading' && model.loadProgress !== null) {
    return `loading ${formatPercent(model.loadProgress)}`;
  }
  if (model.status !== 'loaded') return model.status;
  if (model.busy === null) return 'loaded, busy unknown';
  return model.busy ? 'loaded, busy' : 'loaded, idle';
}

function memoryText(model: ModelState): string {
  if (model.measuredBytes !== null) return formatBytes(model.measuredBytes);
  return model.predictedBytes === null ? '' : `~${formatBytes(model.predictedBytes)}`;
}

function whyText(model: ModelState, nowMs: number): string {
  const away = model.status === 'unloaded' || model.status === 'failed';
  const words = [
    model.big ? 'big' : '',
    model.small ? 'small' : '',
    model.pinned ? 'pinned' : '',
    model.batchOnly ? 'batch only' : '',
    model.guarded === 'observe' ? 'observed only' : '',
    model.leavesAt === null ? '' : `leaves in ${formatDuration(Date.parse(model.leavesAt) - nowMs)} if idle`,
    model.lastUsedAt === null || model.busy === true
      ? ''
      : `used ${formatDuration(nowMs - Date.parse(model.lastUsedAt))} ago`,
    parkedText(model),
    away && model.lastEviction !== null
      ? `left ${formatDuration(nowMs - Date.parse(model.lastEviction.at))} ago: ${model.lastEviction.reason}`
      : '',
  ];
  return words.filter((word) => word !== '').join(', ');
}

function parkedText({ parked }: ModelState): string {
  if (parked === undefined) return '';
  const what = parked.conversations === 1 ? '1 conversation' : `${parked.conversations} conversations`;
  return `${what} parked (${parked.tokens} tokens, ${formatBytes(parked.bytes)})`;
}
