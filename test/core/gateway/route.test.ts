import { describe, expect, it } from 'vitest';
import { InFlight } from '../../../electron/core/gateway/in-flight.ts';
import {
  deviceOfBackend,
  frontRoute,
  KnownRoutes,
  resolveRoute,
} from '../../../electron/core/gateway/route.ts';
import { guardModel } from '../../../electron/core/loop/world.ts';
import { backendSetting } from '../../support/backend-setting.ts';
import { modelView } from '../../support/model-view.ts';

const A = backendSetting({ name: 'a', url: 'http://127.0.0.1:1' });
const B = backendSetting({ name: 'b', url: 'http://127.0.0.1:2' });
const VIEWS = [
  modelView({ backend: 'a', name: 'qwen', aliases: ['big'] }),
  modelView({ backend: 'a', name: 'both' }),
  modelView({ backend: 'b', name: 'both' }),
];

describe('where a request goes', () => {
  it('by name or alias as it stands; by `backend/model` with the backend’s own name', () => {
    const named = resolveRoute('big', VIEWS, [A, B]);
    expect(named.ok && [named.value.setting.name, named.value.sentName]).toEqual(['a', null]);
    const full = resolveRoute('b/both', VIEWS, [A, B]);
    expect(full.ok && [full.value.url, full.value.sentName]).toEqual(['http://127.0.0.1:2', 'both']);
    const alias = resolveRoute('a/big', VIEWS, [A, B]);
    expect(alias.ok && [alias.value.view?.id, alias.value.sentName]).toEqual(['a/qwen', 'big']);
  });

  it('nowhere where a name means several, or none', () => {
    for (const wanted of ['both', 'nobody', null]) {
      const route = resolveRoute(wanted, VIEWS, [A, B]);
      expect(route.ok).toBe(false);
      if (!route.ok) expect(route.error.code).toBe('unknown_model');
    }
  });

  it('without a model: to the only backend there is', () => {
    const route = resolveRoute(null, VIEWS, [A]);
    expect(route.ok && route.value.setting.name).toBe('a');
  });

  it('without a model, to a server of one: to that one, so that it is loaded and booked like any other', () => {
    const only = modelView({ backend: 'a', name: 'qwen', observed: { isOnly: true } });
    const route = resolveRoute(null, [only], [A]);
    expect(route.ok && [route.value.view?.id, route.value.sentName]).toEqual(['a/qwen', null]);
  });

  it('at a front port: always to its backend, which knows best what it has', () => {
    expect(frontRoute('qwen', VIEWS, A, 'u').view?.id).toBe('a/qwen');
    expect(frontRoute('nobody', VIEWS, A, 'u').view).toBeNull();
    expect(frontRoute('b/both', VIEWS, A, 'u').sentName).toBeNull();
    // A server of one model serves it whatever it is called.
    const only = [
      modelView({ backend: 'a', name: 'qwen', observed: { isOnly: true, args: ['llama-server'] } }),
    ];
    expect(frontRoute('gpt-4', only, A, 'u').view?.id).toBe('a/qwen');
  });
});

describe('where a backend’s work takes place', () => {
  it('is the device of its models, else the one that is set for it, else not known', () => {
    const views = [
      modelView({ backend: 'a', name: 'qwen', deviceId: null }),
      modelView({ backend: 'a', name: 'both', deviceId: 'card' }),
      modelView({ backend: 'b', name: 'both', deviceId: 'other' }),
    ];
    expect(deviceOfBackend(A, views)).toBe('card');
    expect(deviceOfBackend({ ...A, device: 'set' }, [])).toBe('set');
    expect(deviceOfBackend(A, [])).toBeNull();
  });
});

describe('routes that are kept', () => {
  it('are those found before, until models or backends are others', () => {
    const routes = new KnownRoutes(() => true);
    const backends = [A, B];
    const first = routes.resolve('qwen', VIEWS, backends);
    expect(routes.resolve('qwen', VIEWS, backends)).toBe(first);
    expect(routes.resolve('qwen', [], backends).ok).toBe(false);
    expect(routes.resolve('qwen', VIEWS, backends).ok).toBe(true);
    expect(routes.resolve('qwen', VIEWS, [B]).ok).toBe(false);
  });

  it('of a backend that does not answer are no unknown ones, by a name it had or by its own', () => {
    let isUp = true;
    const routes = new KnownRoutes(() => isUp);
    const backends = [A, B];
    expect(routes.resolve('qwen', VIEWS, backends).ok).toBe(true);
    const code = (wanted: string): string => {
      const route = routes.resolve(wanted, [], backends);
      return route.ok ? 'ok' : route.error.code;
    };
    expect(code('qwen')).toBe('unknown_model');
    isUp = false;
    // The others nobody has asked for.
    for (const name of ['qwen', 'big', 'both']) expect(code(name), name).toBe('backend_unreachable');
    expect(code('a/anything')).toBe('backend_unreachable');
    expect(code('never-seen')).toBe('unknown_model');
    isUp = true;
    expect(code('a/anything')).toBe('unknown_model');
  });

  it('are not kept for more names than clients use', () => {
    const routes = new KnownRoutes(() => true);
    const backends = [A, B];
    const first = routes.resolve('qwen', VIEWS, backends);
    for (let index = 0; index < 300; index += 1) routes.resolve(`${index}`, VIEWS, backends);
    expect(routes.resolve('qwen', VIEWS, backends)).not.toBe(first);
  });
});

describe('a turn that is known by its lane alone', () => {
  it('has its class, and leaves busy to what is seen of the model', () => {
    const idle = modelView({ backend: 'a', name: 'qwen', observed: { busy: false } });
    const lane = guardModel(idle, () => ({ class: 'interactive', requests: 0 }));
    expect([lane.busy, lane.turnClass]).toEqual([false, 'interactive']);
  });
});

describe('a request in flight', () => {
  const flight = { modelId: 'a/qwen', deviceId: null, caller: null, sinceMs: 0 };

  it('makes its model busy before its backend shows it, with the class of whoever it serves (rule 7)', () => {
    const flights = new InFlight();
    const idle = modelView({ backend: 'a', name: 'qwen', observed: { busy: false } });
    const seen = (): unknown => {
      const { busy, turnClass } = guardModel(idle, (id) => flights.use(id));
      return { busy, turnClass };
    };
    expect(seen()).toEqual({ busy: false, turnClass: null });
    const batch = flights.enter({ ...flight, class: 'batch' });
    expect(seen()).toEqual({ busy: true, turnClass: 'batch' });
    const person = flights.enter({ ...flight, class: 'interactive' });
    expect(seen()).toEqual({ busy: true, turnClass: 'interactive' });
    person[Symbol.dispose]();
    person[Symbol.dispose]();
    expect(seen()).toEqual({ busy: true, turnClass: 'batch' });
    batch[Symbol.dispose]();
    expect(seen()).toEqual({ busy: false, turnClass: null });
  });
});
