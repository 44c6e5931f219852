import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  sampleHistory,
  sampleObservation,
  samplePlan,
  sampleReplay,
  sampleSettings,
} from '../support/answers.ts';
import { findings } from '../support/axe.ts';
import { launchBrowser } from '../support/browser.ts';
import { type OpenPage, openPage, type PageView } from '../support/open-page.ts';

let browser: Browser;
let there: OpenPage;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});
afterEach(async () => {
  expect(there.complaints).toEqual([]);
  await there[Symbol.asyncDispose]();
});

const ANSWERS = {
  history: sampleHistory({}),
  plan: samplePlan({ verdict: 'denied', denial: 'It has no room.', risks: ['It stutters.'] }),
  replay: sampleReplay({}),
  settings: sampleSettings({}),
  'check-setting': { problem: null },
  'change-setting': sampleSettings({ fingerprint: 'def' }),
  observation: sampleObservation({}),
};

async function open(name: string, view: PageView = {}): Promise<OpenPage> {
  there = await openPage(browser, name, { ...view, answers: { ...ANSWERS, ...view.answers } });
  return there;
}

describe('page: settings', () => {
  it('shows each key with its meaning, default and unit, and writes one with the file as it was read', async () => {
    const { page, server } = await open('fine', { hash: '#settings' });
    const row = page.locator('[data-setting="idle"]');
    expect(await row.textContent()).toMatch(/is idle\..*default 180s.*in s, min, h or d/);
    await page.getByLabel('idle', { exact: true }).fill('10min');
    await row.getByRole('button', { name: 'Save idle' }).click();
    await expect
      .poll(() => server.asked.filter((one) => one.path === '/api/change-setting').map((one) => one.body))
      .toEqual([{ key: 'idle', yaml: '10min', fingerprint: 'abc' }]);
  });

  it('says what is wrong as it is typed, and lets it not be saved', async () => {
    const { page, server } = await open('fine', {
      hash: '#settings',
      answers: { 'check-setting': { problem: '"soon" is not a usable duration; write 180s or 2h' } },
    });
    const field = page.getByLabel('idle', { exact: true });
    await field.fill('soon');
    await page.getByText('"soon" is not a usable duration').waitFor();
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    expect(await page.getByRole('button', { name: 'Save idle' }).isDisabled()).toBe(true);
    await field.press('Enter');
    expect(server.asked.filter((one) => one.path === '/api/change-setting')).toEqual([]);
  });

  it('tells an edit on disk in between, and reads what stands there now', async () => {
    const { page, server } = await open('fine', { hash: '#settings' });
    const message = 'config.yaml was changed meanwhile by someone else, so nothing was written.';
    server.answer('/api/change-setting', {
      status: 409,
      body: { error: { code: 'state_mismatch', message } },
    });
    server.answer('/api/settings', { status: 200, body: sampleSettings({ fingerprint: 'new' }) });
    await page.getByLabel('idle', { exact: true }).fill('10min');
    await page.getByRole('button', { name: 'Save idle' }).click();
    await page.getByText(message).waitFor();
    server.answer('/api/change-setting', { status: 200, body: sampleSettings({ fingerprint: 'newer' }) });
    await page.getByRole('button', { name: 'Save idle' }).click();
    await expect
      .poll(() => server.asked.filter((one) => one.path === '/api/change-setting').at(-1)?.body)
      .toMatchObject({ fingerprint: 'new' });
  });

  it('sets one back to its default, and adds a server that was found', async () => {
    const { page, server } = await open('found-backend', { hash: '#settings' });
    await page.getByRole('button', { name: 'Back to the default: floor' }).click();
    await page.getByRole('button', { name: 'Add to the settings: router-8080' }).click();
    await expect
      .poll(() => server.asked.filter((one) => one.path === '/api/change-setting').map((one) => one.body))
      .toEqual([
        { key: 'floor', yaml: null, fingerprint: 'abc' },
        {
          key: 'backends',
          yaml: '- { name: router-8080, kind: llama.cpp, url: "http://127.0.0.1:8080" }',
          fingerprint: 'def',
        },
      ]);
    await page.getByText('router-8080 is in the settings now, and guarded.').waitFor();
  });
});

describe('page: the guide', () => {
  it('is offered before the first config, and put off for good', async () => {
    const { page } = await open('fine', { answers: { observation: sampleObservation({ firstRun: true }) } });
    await page.getByText('First time here?').waitFor();
    await page.getByRole('button', { name: 'Not now' }).click();
    await page.reload();
    await page.locator('.model').first().waitFor();
    expect(await page.getByText('First time here?').count()).toBe(0);
  });

  it('writes what was chosen, each change upon the one before', async () => {
    const { page, server } = await open('found-backend', {
      hash: '#start',
      answers: { settings: sampleSettings({ fingerprint: null, entries: [], firstRun: true }) },
    });
    await page.getByLabel(/Learn it from what the desktop does/).check();
    await page.getByLabel(/One at a time/).check();
    await page.getByRole('button', { name: 'Write these settings' }).click();
    await page.getByText('Written. They are in force now.').waitFor();
    expect(server.asked.filter((one) => one.path === '/api/change-setting').map((one) => one.body)).toEqual([
      { key: 'floor', yaml: 'auto', fingerprint: null },
      { key: 'maxBig', yaml: '1', fingerprint: 'def' },
      { key: 'guards', yaml: 'observe', fingerprint: 'def' },
      {
        key: 'backends',
        yaml: '- { name: router-8080, kind: llama.cpp, url: "http://127.0.0.1:8080" }',
        fingerprint: 'def',
      },
    ]);
  });

  it('tries one turn the whole way, and says how it went', async () => {
    const { page, server } = await open('found-backend', { hash: '#start' });
    server.answer('/api/test-turn', { status: 200, body: { message: 'Answered.' } });
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByText(/answered in .*Everything works/).waitFor();
    const message = 'The model could not be loaded.';
    server.answer('/api/test-turn', { status: 502, body: { error: { code: 'backend_refused', message } } });
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByText(`It did not work: ${message}`).waitFor();
  });

  it('offers to turn the guards on after a day of observing that would have helped', async () => {
    const observation = sampleObservation({
      sinceMs: Date.now() - 26 * 3_600_000,
      stalls: 3,
      models: ['router-8080/mixtral-small'],
    });
    const { page, server } = await open('found-backend', { answers: { observation } });
    await page.getByText('In 26 h of observing, 3 shortages of memory could have been prevented').waitFor();
    await page.getByRole('button', { name: 'Turn the guards on', exact: true }).click();
    await expect
      .poll(() => server.posted)
      .toEqual([{ path: '/api/guards', body: { mode: 'on', backend: null } }]);
  });
});

describe('page: events', () => {
  it('filters by kind, searches, and leads to the moment in the chart', async () => {
    const { page } = await open('after-eviction', { hash: '#events' });
    await page.locator('.log .event').first().waitFor();
    const all = await page.locator('.log .event').count();
    await page.getByRole('button', { name: 'Guards', exact: true }).click();
    const guards = await page.locator('.log .event').count();
    expect(guards).toBeGreaterThan(0);
    expect(guards).toBeLessThan(all);
    await page.getByRole('button', { name: 'Guards', exact: true }).click();
    await page.getByRole('searchbox').fill('vision-8b');
    await expect.poll(() => page.locator('.log .event').count()).toBeLessThan(all);
    for (const text of await page.locator('.log .event').allTextContents())
      expect(text).toContain('vision-8b');
    await page
      .getByRole('link', { name: /Show .* in the chart/ })
      .first()
      .click();
    await page.getByRole('group', { name: /^Memory of/ }).waitFor();
  });

  it('is copied as text with its figures', async () => {
    const { page } = await open('after-eviction', { hash: '#events' });
    await page.locator('.log .event').first().waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy as text' }).click();
    await page.getByText('Copied: paste it into a bug report.').waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    expect(text).toMatch(/^VRAM Landlord .*\nRadeon AI PRO R9700 .*floor 4 GB/);
    expect(text).toMatch(/ evicted \(router\/vision-8b.*\): .*\[.*Bytes=/);
  });
});

describe('page: nobody is shut out', () => {
  const PAGES = ['', '#history', '#events', '#settings', '#start'];

  it.each(['light', 'dark'] as const)('axe finds nothing on any page, in %s', async (colorScheme) => {
    const { page } = await open('after-eviction', { colorScheme });
    for (const hash of PAGES) {
      await page.evaluate((to) => {
        location.hash = to;
      }, hash);
      await page.locator('.card h2').first().waitFor();
      if (hash === '#history') await page.locator('.readout tbody tr').first().waitFor();
      if (hash === '') await page.getByRole('button', { name: /^vision-8b: What if/ }).click();
      if (hash === '') await page.locator('.risks').waitFor();
      expect(await findings(page), `${hash} ${colorScheme}`).toEqual([]);
    }
  });

  it.each([1100, 420])('no page scrolls sideways at %i px', async (width) => {
    const { page } = await open('three-agents', { width });
    for (const hash of PAGES) {
      await page.evaluate((to) => {
        location.hash = to;
      }, hash);
      await page.locator('.card h2').first().waitFor();
      if (hash === '#history') await page.locator('.readout tbody tr').first().waitFor();
      const over = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(over, hash).toBeLessThanOrEqual(0);
    }
  });

  it('the keyboard alone gets everywhere and does everything there', async () => {
    const { page, server } = await open('after-eviction');
    const tabTo = async (name: RegExp): Promise<void> => {
      for (let step = 0; step < 80; step += 1) {
        await page.keyboard.press('Tab');
        const here = await page.evaluate(() => {
          const node = document.activeElement;
          const labels = node instanceof HTMLInputElement ? [...(node.labels ?? [])] : [];
          return [
            node?.getAttribute('aria-label'),
            ...labels.map((label) => label.textContent),
            node?.textContent,
          ]
            .filter(Boolean)
            .join(' ');
        });
        if (name.test(here)) return;
      }
      throw new Error(`Tab does not reach ${name}`);
    };
    await tabTo(/^vision-8b: What if I load it/);
    await page.keyboard.press('Enter');
    await page.locator('.plan .verdict').waitFor();
    await tabTo(/^Close/);
    await page.keyboard.press('Enter');
    expect(await page.locator('.plan').count()).toBe(0);

    await page.keyboard.press('Home');
    await page.evaluate(() => document.body.focus());
    await page.locator('nav a').first().focus();
    await tabTo(/^History/);
    await page.keyboard.press('Enter');
    await page.locator('.readout tbody tr').first().waitFor();
    await tabTo(/^Everything/);
    await page.keyboard.press('ArrowRight');
    // The group moves the focus a moment later.
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.textContent))
      .toMatch(/^Desktop alone/);
    await page.keyboard.press('Space');
    await expect.poll(() => page.locator('.readout tbody tr').count()).toBe(2);

    await page.locator('nav a').first().focus();
    await tabTo(/^Events/);
    await page.keyboard.press('Enter');
    await page.locator('.log .event').first().waitFor();
    const all = await page.locator('.log .event').count();
    await tabTo(/^Guards$/);
    await page.keyboard.press('Space');
    await expect.poll(() => page.locator('.log .event').count()).toBeLessThan(all);

    await page.locator('nav a').first().focus();
    await tabTo(/^Settings/);
    await page.keyboard.press('Enter');
    await page.locator('[data-setting="idle"]').waitFor();
    await tabTo(/^idle/);
    await page.keyboard.type('10min');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => server.asked.find((one) => one.path === '/api/change-setting')?.body)
      .toMatchObject({ key: 'idle', yaml: '10min' });
  });
});
