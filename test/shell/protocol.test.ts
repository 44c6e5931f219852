import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerPageRequest, isPageUrl, PAGE_POLICY, PAGE_URL } from '../../electron/shell/protocol.ts';

let folder = '';
let pageDir = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'landlord-page-'));
  pageDir = join(folder, 'renderer');
  mkdirSync(join(pageDir, 'assets'), { recursive: true });
  writeFileSync(join(pageDir, 'index.html'), '<title>page</title>');
  writeFileSync(join(pageDir, 'assets/page-1a.js'), 'void 0;');
  writeFileSync(join(folder, 'token.json'), '"secret"');
  symlinkSync(join(folder, 'token.json'), join(pageDir, 'link.json'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const get = (url: string, method = 'GET'): Promise<Response> => answerPageRequest({ url, method }, pageDir);

describe('app:// protocol', () => {
  it('serves the page and its files, each with the strict policy and its own type', async () => {
    for (const [url, type] of [
      [PAGE_URL, 'text/html; charset=utf-8'],
      [`${PAGE_URL}index.html?x=1`, 'text/html; charset=utf-8'],
      [`${PAGE_URL}assets/page-1a.js`, 'text/javascript; charset=utf-8'],
    ] as const) {
      const answer = await get(url);
      expect(answer.status, url).toBe(200);
      expect(answer.headers.get('content-type')).toBe(type);
      expect(answer.headers.get('content-security-policy')).toBe(PAGE_POLICY);
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    }
    expect(await (await get(PAGE_URL)).text()).toBe('<title>page</title>');
  });

  it('lets the page reach no network, run nothing inline and be framed by nobody', () => {
    const rules = new Map(
      PAGE_POLICY.split('; ').map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1).join(' ')]),
    );
    expect(rules.get('default-src')).toBe("'none'");
    expect(rules.get('connect-src')).toBe("'none'");
    expect(rules.get('script-src')).toBe("'self'");
    expect(rules.get('style-src')).toBe("'self'");
    expect(rules.get('frame-ancestors')).toBe("'none'");
    expect(PAGE_POLICY).not.toContain('unsafe');
    expect(PAGE_POLICY).not.toContain('http');
  });

  it('serves nothing outside of the page, however it is spelt', async () => {
    for (const url of [
      `${PAGE_URL}../token.json`,
      `${PAGE_URL}assets/../../token.json`,
      `${PAGE_URL}%2e%2e/token.json`,
      `${PAGE_URL}..%2ftoken.json`,
      `${PAGE_URL}assets%2f..%2f..%2ftoken.json`,
      `${PAGE_URL}assets/..%5c..%5ctoken.json`,
      `${PAGE_URL}link.json`,
      `${PAGE_URL}.hidden.json`,
      `${PAGE_URL}index.html%00.js`,
      `${PAGE_URL}/etc/passwd`,
      `${PAGE_URL}assets/`,
      `${PAGE_URL}none.js`,
      'app://other/index.html',
      'app://user@landlord/index.html',
      'file:///etc/passwd',
      'not an address',
    ]) {
      const answer = await get(url);
      expect(answer.status, url).toBe(404);
      expect(await answer.text(), url).not.toContain('secret');
    }
  });

  it('answers GET alone', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect((await get(PAGE_URL, method)).status, method).toBe(405);
  });

  it('takes the page’s own address for the page, and no other', () => {
    expect(isPageUrl(PAGE_URL)).toBe(true);
    expect(isPageUrl(`${PAGE_URL}index.html#models`)).toBe(true);
    for (const url of [
      'app://landlord.example/',
      'http://landlord/',
      'app://landlord:1/',
      'app://landlord/a.js',
      '',
    ])
      expect(isPageUrl(url), url).toBe(false);
  });
});
