import type { DeviceState, TenantState } from '../../shared/state.ts';

/** What a cell of the bar shows. */
export type Cell = 'model' | 'desktop' | 'other' | 'free' | 'floor';

const ART: Readonly<
  Record<Cell, { readonly unicode: string; readonly ascii: string; readonly label: string }>
> = {
  model: { unicode: '█', ascii: '#', label: 'models' },
  desktop: { unicode: '▓', ascii: '=', label: 'desktop' },
  other: { unicode: '▒', ascii: '+', label: 'others' },
  free: { unicode: '░', ascii: '.', label: 'free' },
  floor: { unicode: '╌', ascii: '-', label: 'free, kept for the desktop' },
};

/**
 * A device's memory as a row of cells: models, desktop, others (and what nobody is known to hold), free,
 * and at the right end the part of the free memory that the floor keeps. null while used or total is
 * unknown: an empty bar would look like free memory.
 */
export function budgetCells(
  device: Pick<DeviceState, 'totalBytes' | 'usedBytes' | 'floorBytes'>,
  tenants: readonly Pick<TenantState, 'kind' | 'measuredBytes'>[],
  width: number,
): readonly Cell[] | null {
  const { totalBytes, usedBytes, floorBytes } = device;
  if (totalBytes === null || usedBytes === null || totalBytes <= 0) return null;
  const heldBytes = (kinds: readonly TenantState['kind'][]): number =>
    tenants
      .filter((tenant) => kinds.includes(tenant.kind))
      .reduce((sum, tenant) => sum + (tenant.measuredBytes ?? 0), 0);
  const modelBytes = Math.min(heldBytes(['model', 'agent', 'reserved']), usedBytes);
  const desktopBytes = Math.min(heldBytes(['desktop']), usedBytes - modelBytes);
  const cellAt = (bytes: number): number =>
    Math.min(width, Math.max(0, Math.round((bytes / totalBytes) * width)));
  const modelsEnd = cellAt(modelBytes);
  const desktopEnd = cellAt(modelBytes + desktopBytes);
  const usedEnd = cellAt(usedBytes);
  const floorStart = cellAt(totalBytes - (floorBytes ?? 0));
  return Array.from({ length: width }, (_, index): Cell => {
    if (index < modelsEnd) return 'model';
    if (index < desktopEnd) return 'desktop';
    if (index < usedEnd) return 'other';
    return index < floorStart ? 'free' : 'floor';
  });
}

export function drawBar(cells: readonly Cell[], unicode: boolean): string {
  return `[${cells.map((cell) => ART[cell][unicode ? 'unicode' : 'ascii']).join('')}]`;
}

/** What the characters of a bar mean, those that occur in it. */
export function legend(cells: readonly Cell[], unicode: boolean): string {
  const kinds: readonly Cell[] = ['model', 'desktop', 'other', 'free', 'floor'];
  return kinds
    .filter((kind) => cells.includes(kind))
    .map((kind) => `${ART[kind][unicode ? 'unicode' : 'ascii']} ${ART[kind].label}`)
    .join('  ');
}
