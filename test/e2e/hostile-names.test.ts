/** Names of models, agents and sessions that mean to be HTML, or to reorder what stands beside them. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchBrowser } from '../support/browser.ts';
import { openPage } from '../support/open-page.ts';
import { loadState, type Scenario, stateNames } from '../support/states.ts';

const HTML = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script><a href="javascript:window.pwned=1">x</a>`;
const REORDERS = '\u202egnp.exe';
const NAME = `${HTML}' $(id) ${REORDERS}`;

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});

/** Every text that others choose has the name behind it. */
function hostile(scenario: Scenario): Scenario {
  const chosen = new Set(['name', 'reason', 'session', 'error', 'text', 'model']);
  const walk = (at: unknown, key: string): unknown => {
    if (typeof at === 'string') return chosen.has(key) ? `${at}${NAME}` : at;
    if (Array.isArray(at)) return at.map((one) => walk(one, key));
    if (typeof at !== 'object' || at === null) return at;
    return Object.fromEntries(Object.entries(at).map(([inner, one]) => [inner, walk(one, inner)]));
  };
  return JSON.parse(JSON.stringify(walk(scenario, ''))) as Scenario;
}

describe('hostile names in the window', () => {
  it.each(stateNames)('%s: are text, and reorder nothing that follows them', async (state) => {
    await using open = await openPage(browser, state, { scenario: hostile(loadState(state, Date.now())) });
    const { page } = open;
    for (const hash of ['', '#/events']) {
      await page.evaluate((to) => {
        location.hash = to;
      }, hash);
      await page.waitForFunction(() => document.body.textContent?.includes('window.pwned') === true);
      const found = await page.evaluate((mark) => {
        const isolates = (element: Element): boolean => {
          const style = getComputedStyle(element);
          return (
            style.unicodeBidi.includes('isolate') ||
            style.unicodeBidi === 'plaintext' ||
            !style.display.startsWith('inline') ||
            style.display === 'inline-block'
          );
        };
        const reordered: string[] = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
          const text = node.nodeValue ?? '';
          if (!text.includes(mark)) continue;
          let around = node.parentElement;
          while (around !== null && !isolates(around)) around = around.parentElement;
          if (around === null) continue;
          const range = document.createRange();
          range.setStartAfter(node);
          range.setEndAfter(around.lastChild ?? node);
          const rest = text.slice(text.lastIndexOf(mark) + mark.length) + range.toString();
          if (rest.trim() !== '')
            reordered.push(`${around.tagName}.${around.className}: …${rest.slice(0, 60)}`);
        }
        return {
          pwned: Reflect.get(window, 'pwned') ?? null,
          images: document.querySelectorAll('img[src="x"]').length,
          scripts: document.querySelectorAll('script:not([src])').length,
          links: document.querySelectorAll('a[href^="javascript:"]').length,
          reordered: [...new Set(reordered)],
        };
      }, REORDERS);
      expect(found).toEqual({ pwned: null, images: 0, scripts: 0, links: 0, reordered: [] });
    }
  });
});
