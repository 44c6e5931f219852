import type { RuntimeSource } from '../../electron/shell/runtime-source.ts';
import { ok, type Result } from '../../shared/errors.ts';
import type { Done, LinkState } from '../../shared/ipc-schema.ts';
import { createFakeRuntime, type FakeRuntime } from './fake-runtime.ts';

/** A runtime source over a fake runtime; a test changes its link. */
export interface FakeSource extends RuntimeSource {
  readonly runtime: FakeRuntime;
  stops: number;
  hosts: number;
  onStop: () => Promise<void>;
  onHost: () => Promise<Result<Done>>;
  changeLink(kind: LinkState['kind']): void;
}

export function createFakeSource(runtime: FakeRuntime = createFakeRuntime()): FakeSource {
  const listeners = new Set<(link: LinkState) => void>();
  let link: LinkState = { kind: 'own', message: 'It is own.' };
  const source: FakeSource = {
    runtime,
    api: runtime,
    stops: 0,
    hosts: 0,
    onStop: async () => {},
    onHost: async () => {
      source.changeLink('own');
      return ok({ message: 'Hosted.' });
    },
    get owned() {
      return link.kind === 'own';
    },
    link: () => link,
    onLink(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    changeLink(kind) {
      link = { kind, message: `It is ${kind}.` };
      for (const listener of listeners) listener(link);
    },
    host() {
      source.hosts += 1;
      return source.onHost();
    },
    url: () => (link.kind === 'lost' ? null : 'http://127.0.0.1:7781'),
    openUrl: async () => ok('http://127.0.0.1:7781/?key=1'),
    stop() {
      source.stops += 1;
      return source.onStop();
    },
  };
  return source;
}
