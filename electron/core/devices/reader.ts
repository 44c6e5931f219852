import type { DeviceKind } from '../../../shared/state.ts';
import type { DeviceSample, ProcessMemory, SamplerTrouble, SampleSource } from './sample.ts';

/** What one source brings in one turn. */
export interface Reading {
  readonly devices: readonly DeviceSample[];
  readonly processes: readonly ProcessMemory[];
  readonly troubles: readonly SamplerTrouble[];
}

export interface ReadRequest {
  readonly nowMs: number;
  /** Per-process figures are asked for less often than totals. */
  readonly processes: boolean;
  /**
   * Cards (PCI addresses) that some process has open, from /proc alone; null: not looked yet. A
   * card that may sleep and that nobody uses is left alone, so that we don't keep it awake.
   */
  readonly openCards: ReadonlySet<string> | null;
}

/** One source of readings for one or more devices. A read may block in the driver, or fail: it never throws. */
export interface DeviceReader {
  read(request: ReadRequest): Reading | Promise<Reading>;
  close(): void;
}

/** A card found by discovery, and what is known of it without touching it. */
export interface CardFacts {
  readonly id: string;
  readonly kind: DeviceKind;
  readonly name: string;
  /** Empty: only the vendor's tool lists it, without one. */
  readonly pciAddress: string;
  /** `/sys/class/drm/card1`, or the PCI device's own folder where there is no card node. */
  readonly path: string;
  readonly memory: 'discrete' | 'unified';
  /** The settings say so, whatever the signals; left out: they say nothing. */
  readonly memorySetting?: 'discrete' | 'unified';
  readonly drivesDisplay: boolean | null;
  /** Runtime power management may put it to sleep. */
  readonly maySuspend: boolean;
  readonly notes: readonly string[];
}

/** A sample of a card with nothing read yet. */
export function emptySample(
  card: CardFacts,
  source: SampleSource,
  takenAtMs: number,
  periodMs: number,
): DeviceSample {
  return {
    id: card.id,
    kind: card.kind,
    memory: card.memory,
    name: card.name,
    pciAddress: card.pciAddress === '' ? null : card.pciAddress,
    drivesDisplay: card.drivesDisplay,
    power: 'unknown',
    totalBytes: null,
    usedBytes: null,
    freeBytes: null,
    gttTotalBytes: null,
    gttUsedBytes: null,
    hostAvailableBytes: null,
    busyPercent: null,
    source,
    takenAtMs,
    periodMs,
    notes: card.notes,
    error: null,
  };
}

export const SUSPENDED_NOTE = 'The card is suspended to save power; it is not read, so that it can sleep on.';
export const LEFT_ALONE_NOTE =
  'Nothing uses the card and it may suspend; it is not read meanwhile, so that it can.';
export const HOST_MEMORY_NOTE =
  'This device has no memory of its own: total and free are those of the system’s memory.';

/** Whether reading the card's driver now could keep it from going to sleep. */
export function shouldLeaveAlone(card: CardFacts, request: ReadRequest): boolean {
  if (!card.maySuspend || card.drivesDisplay === true) return false;
  return request.openCards === null || !request.openCards.has(card.pciAddress);
}
