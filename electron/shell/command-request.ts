import { assertNever } from '../../shared/errors.ts';
import type { Command, EventQuery } from '../core/runtime-api.ts';

export interface CommandRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A command as the HTTP API of another process takes it (core/http/routes.ts). */
export function commandRequest(command: Command): CommandRequest {
  switch (command.type) {
    case 'load':
    case 'unload':
      return { path: modelPath(command.model, command.type), body: { force: command.force } };
    case 'pin':
    case 'unpin':
      return { path: modelPath(command.model, command.type), body: {} };
    case 'sleep':
      return { path: '/api/sleep', body: duration(command.forMs) };
    case 'drain':
      return {
        path: '/api/drain',
        body: {
          ...(command.kill === undefined ? {} : { kill: command.kill }),
          ...(command.restartUnit === undefined ? {} : { restartUnit: command.restartUnit }),
        },
      };
    case 'accept':
      return { path: '/api/accept', body: { offer: command.offer } };
    case 'wake':
    case 'restore':
      return { path: `/api/${command.type}`, body: {} };
    case 'makeRoom':
      return { path: '/api/make-room', body: { bytes: command.freeBytes, device: command.deviceId } };
    case 'guards':
      return {
        path: '/api/guards',
        body: { mode: command.mode, backend: command.backend, ...duration(command.forMs) },
      };
    default:
      return assertNever(command, 'command');
  }
}

/** `since` is not among what the server can be asked: the answer is cut by its reader. */
export function eventsPath(query: EventQuery): string {
  const params = new URLSearchParams({ json: '1' });
  if (query.afterId !== undefined) params.set('after', String(query.afterId));
  if (query.beforeId !== undefined) params.set('before', String(query.beforeId));
  for (const kind of query.kinds ?? []) params.append('kind', kind);
  if (query.model !== undefined) params.set('model', query.model);
  if (query.limit !== undefined) params.set('limit', String(query.limit));
  return `/api/events?${params}`;
}

function modelPath(id: string, action: string): string {
  return `/api/models/${encodeURIComponent(id)}/${action}`;
}

function duration(forMs: number | null): Readonly<Record<string, number>> {
  return forMs === null ? {} : { for: forMs };
}
