import type { Backend, BackendChange } from '../../../electron/core/backends/backend.ts';
import { llamaCppBackend } from '../../../electron/core/backends/llama-cpp-router.ts';
import { dialectFor } from '../../../electron/core/backends/make-backend.ts';
import { toldBackend } from '../../../electron/core/backends/told-backend.ts';
import { systemClock } from '../../../electron/core/clock.ts';
import type { ServerInspector } from '../../../electron/core/process/proof.ts';
import type { BackendKind } from '../../../shared/settings.ts';
import type { ModelStatus } from '../../../shared/state.ts';
import { fakeInspector } from '../../support/fake-llama.ts';
import {
  lemonade,
  llamaCpp,
  llamaSwap,
  lmStudio,
  lmStudioOld,
  NOT_FOUND,
  ollama,
  UNEXPECTED,
} from './servers/scripts.ts';
import {
  type Asked,
  type Reply,
  type Script,
  type StagedModel,
  type StagedServer,
  type StagedState,
  serve,
} from './servers/server.ts';

/** One kind of server as the contract meets it: how it is played, and in what it differs from the others. */
export interface Subject {
  readonly title: string;
  readonly kind: BackendKind;
  readonly script: Script;
  readonly notFound: Reply;
  /** Where its list of what is there is read. */
  readonly list: string;
  /** What each state of the server has to be held for; missing: it has no word for it. */
  readonly states: Readonly<Partial<Record<StagedState, ModelStatus>>>;
  /** By its own word, in its list or beside it. */
  readonly tellsBusy: boolean;
  readonly canLoad: boolean;
  readonly canUnload: boolean;
  readonly version: string | null;
  /** Whether a request only reads, loads nothing, wakes nothing and prolongs nothing. */
  readonly isPassive: (asked: Asked) => boolean;
  /** Tells the server's watchers that a model works, where that is no part of its list. */
  readonly tellBusy?: (server: StagedServer, model: StagedModel) => void;
  /** What its server's own process is called. */
  readonly program: readonly string[];
}

const get =
  (...paths: readonly string[]) =>
  (asked: Asked) =>
    asked.method === 'GET' && paths.includes(asked.path);

export const SUBJECTS: readonly Subject[] = [
  {
    title: 'llama.cpp router',
    kind: 'llama.cpp',
    script: llamaCpp,
    notFound: NOT_FOUND,
    list: '/models',
    states: {
      unloaded: 'unloaded',
      loading: 'loading',
      loaded: 'loaded',
      sleeping: 'sleeping',
      odd: 'loaded',
    },
    tellsBusy: true,
    canLoad: true,
    canUnload: true,
    version: 'b11669-test',
    isPassive: (asked) =>
      get('/props', '/models', '/models/sse')(asked) ||
      /^\/metrics\?model=[^&]+&autoload=false$/.test(asked.path),
    program: ['/usr/bin/llama-server'],
  },
  {
    title: 'llama-swap',
    kind: 'llama-swap',
    script: llamaSwap,
    notFound: NOT_FOUND,
    list: '/running',
    states: {
      unloaded: 'unloaded',
      loading: 'loading',
      loaded: 'loaded',
      stopping: 'stopping',
      odd: 'loaded',
    },
    tellsBusy: true,
    canLoad: true,
    canUnload: true,
    version: '217',
    isPassive: get('/running', '/v1/models', '/api/version', '/api/events'),
    tellBusy(server, model) {
      const entries =
        model.busy === true ? [{ id: '1', model: model.name, req_path: '/v1/chat/completions' }] : [];
      server.send({ type: 'inflight', data: JSON.stringify({ operation: 'snapshot', entries }) });
    },
    program: ['/usr/local/bin/llama-swap'],
  },
  {
    title: 'Ollama',
    kind: 'ollama',
    script: ollama,
    notFound: NOT_FOUND,
    list: '/api/ps',
    // A load that is under way looks like one that is done.
    states: { unloaded: 'unloaded', loaded: 'loaded', stopping: 'stopping' },
    tellsBusy: false,
    canLoad: true,
    canUnload: true,
    version: '0.34.2',
    isPassive: (asked) =>
      get('/api/version', '/api/ps', '/api/tags')(asked) ||
      (asked.method === 'POST' && asked.path === '/api/show'),
    program: ['/usr/local/bin/ollama', 'serve'],
  },
  {
    title: 'LM Studio',
    kind: 'lmstudio',
    script: lmStudio,
    notFound: UNEXPECTED,
    list: '/api/v1/models',
    states: { unloaded: 'unloaded', loaded: 'loaded' },
    tellsBusy: false,
    canLoad: true,
    canUnload: true,
    version: null,
    isPassive: get('/api/v1/models'),
    program: ['/opt/LM-Studio/lm-studio'],
  },
  {
    title: 'LM Studio before 0.4',
    kind: 'lmstudio',
    script: lmStudioOld,
    notFound: UNEXPECTED,
    list: '/api/v0/models',
    states: { unloaded: 'unloaded', loaded: 'loaded', odd: 'loaded' },
    tellsBusy: false,
    canLoad: false,
    canUnload: false,
    version: null,
    isPassive: get('/api/v1/models', '/api/v0/models'),
    program: ['/opt/LM-Studio/lm-studio'],
  },
  {
    title: 'Lemonade',
    kind: 'lemonade',
    script: lemonade,
    notFound: NOT_FOUND,
    list: '/v1/health',
    states: { unloaded: 'unloaded', loading: 'loading', loaded: 'loaded' },
    tellsBusy: true,
    canLoad: true,
    canUnload: true,
    version: '9.3.1',
    isPassive: get('/v1/health', '/v1/models'),
    program: ['/usr/bin/lemonade-server', 'serve'],
  },
];

export const FAST = {
  pollMs: 15,
  firstBackoffMs: 5,
  lastBackoffMs: 20,
  tickMs: 10,
  requestTimeoutMs: 1_500,
  acceptMs: 60,
};

export interface Watched extends AsyncDisposable {
  readonly server: StagedServer;
  readonly backend: Backend;
  readonly changes: readonly BackendChange[];
}

export async function watch(
  subject: Subject,
  options: {
    readonly inspector?: (server: StagedServer) => ServerInspector;
    readonly apiKey?: string;
    readonly timings?: Partial<typeof FAST>;
    readonly before?: (server: StagedServer) => void;
  } = {},
): Promise<Watched> {
  const server = await serve(subject.script, subject.notFound);
  options.before?.(server);
  const backend = backendOf(subject, server.url, {
    inspector: options.inspector?.(server) ?? fakeInspector(),
    apiKey: options.apiKey ?? null,
    timings: { ...FAST, ...options.timings },
  });
  const changes: BackendChange[] = [];
  backend.start((change) => changes.push(change));
  return {
    server,
    backend,
    changes,
    async [Symbol.asyncDispose]() {
      await backend.stop();
      await server[Symbol.asyncDispose]();
    },
  };
}

function backendOf(
  subject: Subject,
  url: string,
  rest: {
    readonly inspector: ServerInspector;
    readonly apiKey: string | null;
    readonly timings: typeof FAST;
  },
): Backend {
  const shared = { name: 'backend', url, clock: systemClock, ...rest };
  const dialect = dialectFor(subject.kind, url, systemClock);
  return dialect === null
    ? llamaCppBackend({ ...shared, timings: { ...rest.timings, resyncMs: 30, metricsTimeoutMs: 500 } })
    : toldBackend({ ...shared, dialect });
}
