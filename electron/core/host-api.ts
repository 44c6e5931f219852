import { fail, type Result } from '../../shared/errors.ts';
import type { EngineDesk } from './engine/desk/desk.ts';
import type { SqliteStore } from './events/sqlite-store.ts';
import { runCommand } from './loop/commands.ts';
import type { CommandContext } from './loop/load-command.ts';
import type { Publisher } from './loop/publisher.ts';
import type { ReportDesk } from './loop/reports.ts';
import type { Reservations } from './loop/reservations.ts';
import { reserve } from './loop/reserve-command.ts';
import type { WishKeeper } from './loop/wishes.ts';
import { createAnswers } from './questions/answers.ts';
import type { Command, CommandDone, HostApi, ReservationRequest, Reserved } from './runtime-api.ts';
import { keyFrom } from './security/key-from.ts';
import type { SettingsFile } from './settings/settings-file.ts';

export interface HostParts {
  readonly context: CommandContext;
  readonly publisher: Publisher;
  readonly store: SqliteStore;
  readonly settingsFile: SettingsFile;
  readonly reports: ReportDesk;
  readonly reservations: Reservations;
  readonly wishKeeper: WishKeeper;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** null: the embedded engine's agents can not be asked yet. */
  readonly desk: () => EngineDesk | null;
  /** Where it listens; null: nowhere yet. */
  readonly url: () => string | null;
  /** Nothing new is begun once it is aborted, and what waits ends. */
  readonly stopping: AbortSignal;
}

/** What the window, the command line and the HTTP routes may ask of the runtime. */
export function hostApi(parts: HostParts): HostApi {
  const { context, publisher, store, settingsFile, reports, reservations, stopping } = parts;
  return {
    state: () => publisher.state(),
    onState: (listener) => publisher.onState(listener),
    onEvent: (listener) => context.journal.onEvent(listener),
    events: (query) => store.query(query),
    ask: createAnswers({
      context,
      store,
      settingsFile,
      observes: () => publisher.state().policy.guards === 'observe',
      url: parts.url,
      desk: parts.desk,
      apiKey: () => keyFrom(parts.env, context.loop.settings.server.apiKeyEnv),
    }),
    report: (event) => reports.take(event),
    reserve(request: ReservationRequest, signal: AbortSignal): Promise<Result<Reserved>> {
      return reserve(context, reservations, request, AbortSignal.any([signal, stopping]));
    },
    reservations: () => reservations.list(),
    endReservation: (id) => reservations.end(id, 'ended'),
    async command(command: Command, signal?: AbortSignal): Promise<Result<CommandDone>> {
      if (stopping.aborted) return fail('cancelled', 'VRAM Landlord is being stopped.');
      const either = signal === undefined ? stopping : AbortSignal.any([signal, stopping]);
      const done = await runCommand(context, command, either);
      await parts.wishKeeper.kept;
      return done;
    },
  };
}
