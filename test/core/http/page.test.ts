import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HttpServer } from '../../../electron/core/http/server.ts';
import { pagePath } from '../../../electron/core/http/static-page.ts';
import { createFakeRuntime } from '../../support/fake-runtime.ts';
import { type Answer, request } from '../../support/http-request.ts';
import { BEARER, serveFake } from '../../support/serve-fake.ts';

let folder: string;
let server: HttpServer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-page-'));
  await mkdir(join(folder, 'page', 'assets'), { recursive: true });
  await writeFile(join(folder, 'secret.js'), 'secret');
  await writeFile(join(folder, 'page', 'index.html'), '<!doctype html><title>built</title>');
  await writeFile(join(folder, 'page', 'assets', 'index-3f.js'), 'export {};');
  await writeFile(join(folder, 'page', '.hidden.js'), 'hidden');
  await symlink(join(folder, 'secret.js'), join(folder, 'page', 'assets', 'link.js'));
  ({ server } = await serveFake({ pageDir: join(folder, 'page') }));
});

afterEach(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = BEARER): Promise<Answer> =>
  request(server.port, 'GET', path, headers);

describe('the built page', () => {
  it('is served with a strict policy and is not stored', async () => {
    const answer = await get('/');
    expect(answer.text).toContain('<title>built</title>');
    expect(answer.headers['cache-control']).toBe('no-store');
    const policy = String(answer.headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
  });

  it('has its scripts with their type', async () => {
    const answer = await get('/assets/index-3f.js');
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8']);
  });

  it.each(['/', '/assets/index-3f.js', '/index.html'])(
    '%s without a cookie tells how to open it',
    async (path) => {
      const answer = await get(path, {});
      expect(answer.status).toBe(401);
      expect(answer.text).toContain('landlord open');
      expect(answer.text).not.toContain('built');
    },
  );

  it.each([
    '/assets/../../secret.js',
    '/assets/..%2f..%2fsecret.js',
    '/assets/%2e%2e/%2e%2e/secret.js',
    '/assets/..%5c..%5csecret.js',
    '/assets/link.js',
    '/assets/index-3f.js%00',
    '/assets/',
    '/.hidden.js',
    '/assets',
    '//secret.js',
  ])('%s leads nowhere', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(404);
    expect(answer.text).not.toMatch(/secret$|hidden$/);
  });

  it('knows only plain names', () => {
    expect(pagePath('/')).toBe('index.html');
    expect(pagePath('/assets/index-D3_x.css')).toBe('assets/index-D3_x.css');
    for (const path of ['/..', '/a/../b', '/a//b', '/a/.b', '/%zz', '/a%00', 'a', '/a\\b']) {
      expect([path, pagePath(path)]).toEqual([path, null]);
    }
  });
});

describe('the plain page', () => {
  it('stands in when none is built, with the figures, and no script of a name runs', async () => {
    const runtime = createFakeRuntime();
    const devices = runtime
      .state()
      .devices.map((device) => ({ ...device, name: '<script>alert(1)</script>' }));
    runtime.publish({ devices });
    runtime.append({ kind: 'evicted', reason: 'Made <room> for "coder".' });
    const plain = await serveFake({ runtime, pageDir: join(folder, 'nowhere') });
    const answer = await request(plain.server.port, 'GET', '/', BEARER);
    await plain.server.stop();
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('15.0 GB of 24.0 GB used');
    expect(answer.text).toContain('router/coder-9b');
    expect(answer.text).toContain('Made &lt;room&gt; for &quot;coder&quot;.');
    expect(answer.text).not.toContain('<script');
    expect(answer.headers['content-security-policy']).toMatch(/style-src 'sha256-[\w+/]+=*'/);
  });
});
