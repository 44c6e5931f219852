import type { Result } from '../../../../shared/errors.ts';
import type { NewEvent } from '../../../../shared/events.ts';
import type { Clock } from '../../clock.ts';
import type { Denial } from '../../ledger/booking.ts';
import type { DeviceKind } from '../../ledger/footprint/device-kind.ts';
import type { Footprint } from '../../ledger/footprint/estimate.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { EngineHost } from '../engine-host.ts';

export interface DeskDevice {
  readonly id: string;
  readonly name: string;
  /** What the engine most likely computes with there. */
  readonly kind: DeviceKind;
  /** The engine's host memory is this device's too. */
  readonly unified: boolean;
}

export interface FootprintRequest {
  readonly path: string;
  /** null: what the model was trained for. */
  readonly contextTokens: number | null;
  /** null: all. */
  readonly gpuLayers: number | null;
  readonly kind: DeviceKind;
}

/** What holds for agents at this moment. */
export interface DeskPolicy {
  readonly draining: boolean;
  /** Big models may not load; null: they may. */
  readonly asleep: boolean;
  isBig(path: string, bytes: number): boolean;
}

/** Everything the desk needs of the rest, so that tests have it without a runtime. */
export interface DeskWorld {
  readonly host: EngineHost;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly estimate: (request: FootprintRequest) => Promise<Result<Footprint>>;
  /** Where agents live. Errors: `unknown_device`. */
  readonly device: () => Promise<Result<DeskDevice>>;
  /** Ids of all devices, for STATUS. */
  readonly devices: () => readonly string[];
  /** The desk has no model loaded any more: the engine may be ended where nobody else uses it. */
  readonly engineIdle: () => Promise<void>;
  /** Makes idle models leave; false: they can't give enough. */
  readonly makeRoom: (wish: {
    readonly deviceId: string;
    readonly name: string;
    readonly denial: Denial;
  }) => Promise<boolean>;
  /** Whether the weights of this file are in the book already, as a model that the gateway serves. */
  readonly bookedElsewhere: (path: string) => boolean;
  /** Resolves with the next reading of the device, or when none comes. */
  readonly reading: (deviceId: string) => Promise<void>;
  /** What would have to go, in words. */
  readonly advice: (wish: {
    readonly deviceId: string;
    readonly name: string;
    readonly denial: Denial;
  }) => string;
  readonly policy: () => DeskPolicy;
  /** Of an agent that asks for no number. */
  readonly usualContextTokens: () => number;
  readonly classOf: (agent: string) => 'interactive' | 'batch';
  readonly tell: (event: NewEvent) => void;
  /** What others see of the agents has changed. */
  readonly changed: () => void;
  /** Links followed; null: no such file. */
  readonly realPath: (path: string) => Promise<string | null>;
}
