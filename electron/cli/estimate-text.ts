import { formatBytes } from '../../shared/format.ts';
import type { Footprint } from '../core/ledger/footprint/estimate.ts';
import type { Fit } from '../core/ledger/footprint/fit.ts';
import type { GgufHeader } from '../core/ledger/footprint/gguf-header.ts';
import type { Room } from './room-now.ts';
import { columns, paint, plain, type Terminal } from './terminal.ts';

/** A table of the parts, what the model is, and the notes. */
export function estimateText(
  name: string,
  header: GgufHeader,
  footprint: Footprint,
  terminal: Terminal,
): string {
  const { layers, kvLayers, contextTokens } = footprint;
  const cached = kvLayers === layers ? '' : `, ${kvLayers} of them with a cache`;
  const parts: readonly (readonly [string, number])[] = [
    ['weights', footprint.weightsBytes],
    ['keys and values', footprint.kvBytes],
    ['recurrent state', footprint.recurrentBytes],
    ['compute buffers', footprint.computeBytes],
    ['driver and process', footprint.overheadBytes],
  ];
  const rows = parts.filter(([, bytes]) => bytes > 0).map(([part, bytes]) => [part, formatBytes(bytes)]);
  const table = columns([...rows, ['together', formatBytes(footprint.totalBytes)]], [1]);
  const last = table.length - 1;
  return [
    paint(terminal, 'bold', plain(name)),
    `${plain(header.architecture)}, ${layers} layers${cached}, ${contextTokens} tokens of context`,
    '',
    ...table.map((line, index) => `  ${index === last ? paint(terminal, 'bold', line) : line}`),
    ...(footprint.notes.length === 0 ? [] : ['']),
    ...footprint.notes.map((note) => paint(terminal, 'quiet', plain(note))),
  ].join('\n');
}

export function fitText(found: Fit, room: Room, terminal: Terminal): string {
  const free = `${formatBytes(room.bytes)} of ${plain(room.device)} (${room.how})`;
  switch (found.kind) {
    case 'context':
      return `Fits into ${free}: all layers with ${found.contextTokens} tokens of context, ${formatBytes(found.footprint.totalBytes)}.`;
    case 'layers':
      return `Into ${free} ${found.gpuLayers === 1 ? 'fits 1 layer' : `fit ${found.gpuLayers} layers`} with ${found.contextTokens} tokens of context, ${formatBytes(found.footprint.totalBytes)}: start it with --gpu-layers ${found.gpuLayers}.`;
    case 'none':
      return paint(
        terminal,
        'warning',
        `Does not fit into ${free}: the least it takes there is ${formatBytes(found.leastBytes)}.`,
      );
  }
}
