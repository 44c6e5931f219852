import type { ControlLoop } from './control-loop.ts';
import type { AgentDesk } from './engine/desk/desk-api.ts';
import type { GatewayMount } from './http/routes.ts';
import type { Journal } from './loop/journal.ts';
import type { HostApi } from './runtime-api.ts';

/** Everything that runs while the runtime does, but for its address and its files' lock. */
export interface Box {
  readonly api: HostApi;
  readonly loop: ControlLoop;
  readonly journal: Journal;
  readonly gateway: GatewayMount;
  /** Agents of the embedded engine, for the ledger socket. */
  readonly desk: AgentDesk;
  /** It listens there from now on. */
  listens(url: string): void;
  stop(): Promise<void>;
}
