import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { choiceFrom, realParts } from '../../electron/shell/real-source.ts';
import { ok } from '../../shared/errors.ts';

describe('real source', () => {
  it('reads the options of `landlord serve`, and leaves switches of Electron alone', () => {
    const args = [
      '--port',
      '8000',
      '--state-dir=/s',
      '--config',
      'c.yaml',
      '--ozone-platform=x11',
      '--verbose',
    ];
    const read = ok({ configPath: 'c.yaml', stateDir: '/s', port: 8000 });
    expect(choiceFrom(args)).toEqual(read);
    // From sources the app's own folder stands first.
    expect(choiceFrom(['/here/out/app', ...args])).toEqual(read);
    expect(choiceFrom([])).toEqual(ok({ configPath: null, stateDir: null, port: null }));
    for (const port of ['x', '70000', '-1', '1.5', '']) {
      const refused = choiceFrom(['--port', port]);
      expect(refused.ok || refused.error.code, port).toBe('bad_input');
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
