import { describe, expect, it } from 'vitest';
import type { ProcessFacts, ServerQuery } from '../../../electron/core/process/identity.ts';
import {
  isLlamaServer,
  likelyServer,
  proveServer,
  routerProcess,
} from '../../../electron/core/process/proof.ts';
import { differenceFrom } from '../../../electron/core/process/same-process.ts';

const QUERY: ServerQuery = { port: 41_001, alias: 'qwen', routerPort: 8080 };

function facts(change: Partial<ProcessFacts> = {}): ProcessFacts {
  return {
    pid: 200,
    startTimeTicks: 9_000,
    parentPid: 100,
    parentStartTimeTicks: 5_000,
    uid: 1000,
    command: ['/opt/llama-server', '--port', '41001', '--alias', 'qwen', '--model', '/m.gguf'],
    listeningPorts: [41_001],
    routerPort: 8080,
    cpuMs: 10,
    state: 'S',
    ...change,
  };
}

const ROUTER = facts({
  pid: 100,
  startTimeTicks: 5_000,
  parentPid: 1,
  parentStartTimeTicks: 1,
  command: ['/opt/llama-server', '--models-preset', 'm.ini', '--port', '8080'],
  listeningPorts: [8080],
  routerPort: null,
});

function whyNot(list: readonly ProcessFacts[], router: ProcessFacts | null = ROUTER, query = QUERY): string {
  const proof = proveServer(list, query, router);
  return proof.proven ? 'proven' : proof.why;
}

describe('rule 10: a process is ours to signal only when all of its marks agree', () => {
  it('is proven by port, alias, listening port and parent, and records them', () => {
    const proof = proveServer([facts()], QUERY, ROUTER);
    expect(proof).toMatchObject({
      proven: true,
      identity: {
        pid: 200,
        startTimeTicks: 9_000,
        port: 41_001,
        parentPid: 100,
        parentStartTimeTicks: 5_000,
      },
    });
  });

  it('keeps what of its environment changes a model’s size, which is no mark of it', () => {
    const variables = [['LLAMA_ARG_CTX_SIZE', '8192']] as const;
    const proof = proveServer([facts({ variables })], QUERY, ROUTER);
    expect(proof).toMatchObject({ proven: true, identity: { variables } });
    expect(proof.proven && differenceFrom(proof.identity, facts())).toBeNull();
  });

  it('is not proven when several processes match', () => {
    expect(whyNot([facts(), facts({ pid: 201 })])).toMatch(/200, 201 all match/);
  });

  it('is not proven when another user runs it', () => {
    expect(whyNot([facts({ listeningPorts: null })])).toMatch(/another user/);
  });

  it('is not proven when it is seen but listens in a container', () => {
    expect(whyNot([facts({ listeningPorts: [] })])).toMatch(/container/);
  });

  it('is not proven when a reused pid stands where the child was', () => {
    expect(whyNot([facts({ command: ['/usr/bin/python3', 'x.py'], listeningPorts: [] })])).toMatch(
      /no process carries/,
    );
    expect(whyNot([facts({ command: ['/usr/bin/nc', '-l', '41001'] })])).toMatch(/process 200 \(nc\)/);
  });

  it.each<[string, Partial<ProcessFacts>]>([
    ['another port', { command: ['llama-server', '--port', '41002', '--alias', 'qwen'] }],
    ['another alias', { command: ['llama-server', '--port', '41001', '--alias', 'other'] }],
    ['another parent', { parentPid: 1 }],
    ['a parent that started at another time', { parentStartTimeTicks: 4_000 }],
    ['an age greater than its router', { startTimeTicks: 4_000 }],
    ["another router's port in its environment", { routerPort: 9090 }],
    ['an end already', { state: 'Z' }],
    ['a command line that is hidden', { command: null }],
  ])('is not proven with %s', (_, change) => {
    expect(whyNot([facts(change)])).not.toBe('proven');
  });

  it('is not proven when the router itself was not found', () => {
    expect(whyNot([facts()], null)).toMatch(/router's own process was not found/);
  });

  it('accepts a build that sets no variable, and one that spells its flags with =', () => {
    expect(whyNot([facts({ routerPort: null })])).toBe('proven');
    expect(whyNot([facts({ command: ['llama-server', '--port=41001', '--alias=a,qwen'] })])).toBe('proven');
  });

  it('says that no signal will be sent', () => {
    expect(whyNot([])).toMatch(/No signal will be sent/);
  });
});

describe('a plain server', () => {
  const query: ServerQuery = { port: 8081, alias: null, routerPort: null };
  const plain = facts({
    command: ['llama-server', '-m', 'x.gguf'],
    listeningPorts: [8081],
    routerPort: null,
  });

  it('is proven by listening, with its port from the environment', () => {
    expect(whyNot([plain], null, query)).toBe('proven');
  });

  it("is never a container's proxy that listens in its place", () => {
    const proxy = facts({ command: ['/usr/bin/docker-proxy', '-host-port', '8081'], listeningPorts: [8081] });
    expect(whyNot([proxy], null, query)).toMatch(/docker-proxy/);
    expect(whyNot([plain, facts({ ...proxy, pid: 300 })], null, query)).toMatch(/listens on that port too/);
  });
});

describe('finding the processes', () => {
  it('takes the one llama-server that listens on the port as the router', () => {
    expect(routerProcess([ROUTER], 8080)?.pid).toBe(100);
    expect(routerProcess([facts({ command: ['docker-proxy'], listeningPorts: [8080] })], 8080)).toBeNull();
    expect(routerProcess([ROUTER, facts({ ...ROUTER, pid: 101 })], 8080)).toBeNull();
  });

  it('names a likely process for reading CPU time where proof fails, and none where two match', () => {
    const hidden = facts({ listeningPorts: null });
    expect(likelyServer([hidden], QUERY)?.pid).toBe(200);
    expect(likelyServer([hidden, facts({ pid: 201 })], QUERY)).toBeNull();
  });

  it.each([
    [['/usr/bin/llama-server', '-m', 'x'], true],
    [['/home/u/.llama-app/llama', 'serve'], true],
    [['llama', 'run'], false],
    [['/usr/bin/python3', 'llama-server.py'], false],
    [[], false],
  ])('knows a llama-server by its command: %j', (command, expected) => {
    expect(isLlamaServer(command)).toBe(expected);
  });
});
