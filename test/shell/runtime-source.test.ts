import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  choiceFrom,
  connectRuntime,
  realParts,
  type SourceParts,
} from '../../electron/shell/runtime-source.ts';
import { fail, ok } from '../../shared/errors.ts';

const choice = { configPath: null, stateDir: null, port: null };

function parts(change: Partial<SourceParts>): SourceParts {
  return {
    startRuntime: async () => fail('already_running', 'One is running (pid 7).'),
    findRuntime: async () => ok({ url: 'http://127.0.0.1:7781', token: 't', pid: 7 }),
    askToOpen: async (runtime) => ok(`${runtime.url}/?key=1`),
    ...change,
  };
}

describe('runtime source', () => {
  it('starts one, and ends what it has started', async () => {
    let stops = 0;
    const runtime = {
      openUrl: 'http://127.0.0.1:1/?key=a',
      stop: async () => {
        stops += 1;
      },
    };
    const source = await connectRuntime(parts({ startRuntime: async () => ok(runtime) }), choice);
    if (!source.ok) throw new Error(source.error.message);
    expect(source.value.owned).toBe(true);
    expect(await source.value.openUrl()).toEqual(ok('http://127.0.0.1:1/?key=a'));
    await source.value.stop();
    expect(stops).toBe(1);
  });

  it('takes the one that runs, and looks for it anew for each window', async () => {
    let port = 7781;
    const findRuntime: SourceParts['findRuntime'] = async () =>
      ok({ url: `http://127.0.0.1:${port}`, token: 't', pid: 7 });
    const source = await connectRuntime(parts({ findRuntime }), choice);
    if (!source.ok) throw new Error(source.error.message);
    expect(source.value.owned).toBe(false);
    port = 9000;
    expect(await source.value.openUrl()).toEqual(ok('http://127.0.0.1:9000/?key=1'));
    await source.value.stop();
  });

  it('tells why none could be started when none is found either', async () => {
    const taken = await connectRuntime(
      parts({ findRuntime: async () => fail('no_runtime', 'None.') }),
      choice,
    );
    expect(taken).toEqual(fail('already_running', 'One is running (pid 7).'));
    const full = await connectRuntime(
      parts({ startRuntime: async () => fail('storage_failed', 'The disk is full.') }),
      choice,
    );
    expect(full).toEqual(fail('storage_failed', 'The disk is full.'));
  });

  it('reads the options of `landlord serve`, and leaves switches of Electron alone', () => {
    expect(
      choiceFrom([
        '--port',
        '8000',
        '--state-dir=/s',
        '--config',
        'c.yaml',
        '--ozone-platform=x11',
        '--verbose',
      ]),
    ).toEqual(ok({ configPath: 'c.yaml', stateDir: '/s', port: 8000 }));
    expect(choiceFrom([])).toEqual(ok(choice));
    for (const port of ['x', '70000', '-1', '1.5', '']) {
      const read = choiceFrom(['--port', port]);
      expect(read.ok || read.error.code, port).toBe('bad_input');
    }
  });

  it('asks a runtime for an address with its token, and says when it gives none', async () => {
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
      response.writeHead(seen.length === 1 ? 200 : 500, { 'content-type': 'application/json' });
      response.end(seen.length === 1 ? '{"url":"http://127.0.0.1:1/?key=z"}' : '<html>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const found = { url: `http://127.0.0.1:${port}`, token: 'secret', pid: null };
    expect(await realParts.askToOpen(found)).toEqual(ok('http://127.0.0.1:1/?key=z'));
    expect(seen).toEqual(['POST /api/open Bearer secret']);
    expect(await realParts.askToOpen(found)).toMatchObject({ ok: false, error: { code: 'no_runtime' } });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(await realParts.askToOpen(found)).toMatchObject({ ok: false, error: { code: 'no_runtime' } });
  });
});
