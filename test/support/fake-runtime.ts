import type {
  Command,
  CommandDone,
  EventQuery,
  HostApi,
  ReportedEvent,
  Reservation,
  ReservationEnd,
  ReservationRequest,
} from '../../electron/core/runtime-api.ts';
import { fail, type LandlordError, ok, type Result } from '../../shared/errors.ts';
import type { LandlordEvent, NewEvent } from '../../shared/events.ts';
import type { AnswerOf, ArgsOf, QuestionName } from '../../shared/ipc-schema.ts';
import { type AgentState, type LandlordState, type ModelState, STATE_SCHEMA } from '../../shared/state.ts';

const GB = 1_000_000_000;

/** A runtime with a 24 GB card, a desktop and four models, whose state and events a test sets. */
export interface FakeRuntime extends HostApi {
  /** Everything that was asked for, in order. */
  readonly commands: Command[];
  readonly queries: EventQuery[];
  /** The questions that were asked, in order. */
  readonly asked: { readonly name: QuestionName; readonly args: unknown }[];
  /** What `ask` answers by name; refused as `not_supported` where nothing is set. */
  answers: { readonly [Name in QuestionName]?: AnswerOf<Name> };
  readonly reported: ReportedEvent[];
  /** What was asked for, in order. */
  readonly reserveRequests: ReservationRequest[];
  /** What `reserve` answers where it is not granted; null: it is. */
  refuseReserve: (request: ReservationRequest, signal: AbortSignal) => Promise<LandlordError | null>;
  /** Ends one as its holder, somebody else or the end of the runtime does. */
  endAs(id: string, how: ReservationEnd): boolean;
  publish(change: Partial<LandlordState>): void;
  /** `at` is one of a row of made-up times unless it is given. */
  append(event: Partial<NewEvent> & { readonly at?: string }): LandlordEvent;
  /** As retention does. */
  forgetEventsBefore(id: number): void;
  /** What `command` answers; default: done. */
  answer: (command: Command, signal?: AbortSignal) => Promise<Result<CommandDone>> | Result<CommandDone>;
  failEvents: boolean;
  stateListeners(): number;
  eventListeners(): number;
}

export function createFakeRuntime(initial: LandlordState = sampleState()): FakeRuntime {
  let state = initial;
  let log: LandlordEvent[] = [];
  let nextId = 1;
  const stateListeners = new Set<(state: LandlordState) => void>();
  const eventListeners = new Set<(event: LandlordEvent) => void>();
  const held = new Map<
    string,
    { readonly shown: Reservation; readonly over: ((how: ReservationEnd) => void)[] }
  >();
  const endAs = (id: string, how: ReservationEnd): boolean => {
    const one = held.get(id);
    held.delete(id);
    for (const listener of one?.over ?? []) listener(how);
    return one !== undefined;
  };
  return {
    reserveRequests: [],
    refuseReserve: async () => null,
    async reserve(request, signal) {
      this.reserveRequests.push(request);
      const refused = await this.refuseReserve(request, signal);
      if (refused !== null) return { ok: false, error: refused };
      const shown: Reservation = {
        id: `job-${this.reserveRequests.length}`,
        name: request.name ?? 'a job',
        deviceId: request.device ?? 'pci:0000:03:00.0',
        bytes: request.bytes,
        measuredBytes: null,
        pids: request.pid === null ? [] : [request.pid],
        since: '2026-03-04T09:00:00.000Z',
      };
      const over: ((how: ReservationEnd) => void)[] = [];
      held.set(shown.id, { shown, over });
      return ok({
        reservation: shown,
        onOver: (listener: (how: ReservationEnd) => void) => void over.push(listener),
        release: (how: ReservationEnd = 'closed') => void endAs(shown.id, how),
      });
    },
    reservations: () => [...held.values()].map((one) => one.shown),
    endReservation: (id) => endAs(id, 'ended'),
    endAs,
    commands: [],
    queries: [],
    asked: [],
    answers: {},
    async ask<Name extends QuestionName>(name: Name, args: ArgsOf<Name>): Promise<Result<AnswerOf<Name>>> {
      this.asked.push({ name, args });
      const answer = this.answers[name];
      return answer === undefined ? fail('not_supported', `No answer to ${name} is set.`) : ok(answer);
    },
    reported: [],
    failEvents: false,
    answer: (command) => ok({ message: `Did ${command.type}.` }),
    state: () => state,
    onState(listener) {
      stateListeners.add(listener);
      return () => void stateListeners.delete(listener);
    },
    onEvent(listener) {
      eventListeners.add(listener);
      return () => void eventListeners.delete(listener);
    },
    async events(query) {
      this.queries.push(query);
      if (this.failEvents) return fail('storage_failed', 'The event log cannot be read.');
      const found = log.filter(
        (event) =>
          event.id > (query.afterId ?? 0) &&
          event.id < (query.beforeId ?? Number.POSITIVE_INFINITY) &&
          (query.kinds === undefined || query.kinds.includes(event.kind)) &&
          (query.model === undefined || event.model === query.model),
      );
      return ok(found.slice(-(query.limit ?? 200)));
    },
    async command(command, signal) {
      this.commands.push(command);
      return this.answer(command, signal);
    },
    async report(event) {
      this.reported.push(event);
    },
    publish(change) {
      state = { ...state, ...change, revision: state.revision + 1 };
      for (const listener of stateListeners) listener(state);
    },
    append(event) {
      const full: LandlordEvent = {
        kind: 'loaded',
        reason: `Event ${nextId}.`,
        numbers: {},
        ...event,
        id: nextId,
        at: event.at ?? new Date(Date.UTC(2026, 2, 4, 9, 0, nextId % 60)).toISOString(),
      };
      nextId += 1;
      log.push(full);
      for (const listener of eventListeners) listener(full);
      return full;
    },
    forgetEventsBefore(id) {
      log = log.filter((event) => event.id >= id);
    },
    stateListeners: () => stateListeners.size,
    eventListeners: () => eventListeners.size,
  };
}

export function sampleModel(change: Partial<ModelState> & { readonly id: string }): ModelState {
  return {
    backend: change.id.slice(0, change.id.indexOf('/')),
    status: 'unloaded',
    busy: false,
    big: false,
    pinned: false,
    batchOnly: false,
    deviceId: 'pci:0000:03:00.0',
    predictedBytes: null,
    measuredBytes: null,
    lastUsedAt: null,
    pid: null,
    port: null,
    guarded: 'on',
    small: false,
    loadProgress: null,
    contextTokens: null,
    leavesAt: null,
    lastEviction: null,
    ...change,
  };
}

export function sampleAgent(change: Partial<AgentState> & { readonly agent: string }): AgentState {
  return {
    id: `engine/${change.agent}`,
    source: 'engine',
    class: null,
    model: 'embedded/tiny',
    backend: 'embedded',
    state: 'idle',
    since: null,
    tokensPerS: null,
    tokens: null,
    kv: null,
    bookedBytes: null,
    deviceId: null,
    lastSwitchMs: null,
    queuePosition: null,
    weightsBytes: null,
    loadProgress: null,
    laneAgeMs: null,
    ...change,
  };
}

export function sampleState(): LandlordState {
  return {
    schema: STATE_SCHEMA,
    revision: 1,
    at: '2026-03-04T09:00:00.000Z',
    devices: [
      {
        id: 'pci:0000:03:00.0',
        kind: 'amdgpu',
        name: 'Radeon Test 24',
        totalBytes: 24 * GB,
        usedBytes: 15 * GB,
        freeBytes: 9 * GB,
        gttUsedBytes: null,
        busyPercent: 37,
        sampledAt: '2026-03-04T09:00:00.000Z',
        source: 'amdgpu-sysfs',
        health: 'ok',
        capBytes: 21.6 * GB,
        bookedBytes: 12 * GB,
        floorBytes: 3 * GB,
        hardFloorBytes: 1.5 * GB,
        outstandingBytes: 0,
        drivesDisplay: true,
        evictionUnderWay: false,
        unified: false,
        notes: [],
      },
    ],
    tenants: [
      {
        id: 'desktop',
        kind: 'desktop',
        name: 'Desktop',
        deviceId: 'pci:0000:03:00.0',
        predictedBytes: null,
        measuredBytes: 3 * GB,
        pids: [812],
        parts: [{ name: 'firefox', bytes: 1.2 * GB, pid: 812 }],
      },
      {
        id: 'model:router/coder-9b',
        kind: 'model',
        name: 'router/coder-9b',
        deviceId: 'pci:0000:03:00.0',
        predictedBytes: 11 * GB,
        measuredBytes: 12 * GB,
        pids: [4242],
      },
    ],
    models: [
      sampleModel({
        id: 'router/coder-9b',
        status: 'loaded',
        big: true,
        busy: true,
        measuredBytes: 12 * GB,
        pid: 4242,
        port: 41001,
      }),
      sampleModel({
        id: 'router/vision-27b',
        big: true,
        predictedBytes: 19 * GB,
        lastEviction: {
          at: '2026-03-04T08:58:00.000Z',
          reason: 'Free memory was 0.9 GB under the floor.',
          freedBytes: 18 * GB,
        },
      }),
      sampleModel({ id: 'router/bge', status: 'sleeping', small: true, pinned: true, busy: null }),
      sampleModel({ id: 'ollama/bge', guarded: 'observe' }),
    ],
    lanes: [],
    agents: [],
    asleep: null,
    policy: {
      guards: 'on',
      guardsPausedUntil: null,
      floor: '3.0 GB',
      cap: '90 %',
      maxBig: 'fit',
      race: 'class',
      idleMs: 180_000,
      raceGraceMs: 1000,
    },
    backends: [
      {
        name: 'router',
        kind: 'llama.cpp',
        url: 'http://127.0.0.1:8080',
        status: 'up',
        since: '2026-03-04T08:00:00.000Z',
        error: null,
        version: 'b7000',
        guards: 'on',
        found: false,
      },
      {
        name: 'ollama',
        kind: 'ollama',
        url: 'http://127.0.0.1:11434',
        status: 'unknown',
        since: null,
        error: null,
        version: null,
        guards: 'observe',
        found: true,
      },
    ],
    notices: [],
    restorable: ['router/vision-27b'],
    version: '0.1.0',
  };
}
