import type { ParseArgsOptionsConfig } from 'node:util';
import type { Invocation } from './arguments.ts';
import type { Terminal } from './terminal.ts';

/** Runs a command; the value is its exit code. */
export type Run = (invocation: Invocation, terminal: Terminal) => Promise<number>;

export interface CommandInfo {
  readonly name: string;
  /** After `landlord `. */
  readonly usage: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `--help` adds to the usage. */
  readonly help: readonly string[];
  readonly options: ParseArgsOptionsConfig;
  /** How many arguments beside the options; `command`: a whole command line after `--`. */
  readonly argumentCount: number | 'optional' | 'command' | 'file and flags';
  /** Only what a command needs is loaded, so that `status` starts fast. */
  readonly load: () => Promise<Run>;
  /** It ends in order on a signal by itself. */
  readonly handlesSignals?: true;
}

export const WHERE: ParseArgsOptionsConfig = { 'state-dir': { type: 'string' }, port: { type: 'string' } };
export const JSON_OPTION: ParseArgsOptionsConfig = { json: { type: 'boolean' } };
export const WHERE_HELP = '--state-dir D, --port N   which runtime, where there are several';
