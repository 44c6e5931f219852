import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchBrowser } from '../support/browser.ts';
import { largeScenario } from '../support/large.ts';
import { type OpenPage, openPage } from '../support/open-page.ts';
import { loadState } from '../support/states.ts';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser?.close();
});

/** How often Chromium has laid the page out since; it counts only while it is asked to. */
async function layoutCounter(there: OpenPage): Promise<() => Promise<number>> {
  const session = await there.page.context().newCDPSession(there.page);
  await session.send('Performance.enable');
  const read = async (): Promise<number> => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'LayoutCount')?.value ?? Number.NaN;
  };
  const before = await read();
  return async () => (await read()) - before;
}

describe('page: 200 models and 5 000 events', () => {
  it('shows what is loaded first, finds any event, and puts no more into the page than is looked at', async () => {
    await using there = await openPage(browser, 'fine', { scenario: largeScenario(Date.now()) });
    const { page } = there;
    await page.locator('.model').first().waitFor();
    expect(await page.locator('.model').first().textContent()).toContain('idle');
    await page.evaluate(() => {
      location.hash = '#events';
    });
    await page.getByText('5,000 of 5,000').waitFor();
    expect(await page.locator('.log .event').count()).toBe(60);
    await page.getByRole('searchbox').fill('model-042 reason 4207');
    await page.getByText('1 of 5,000').waitFor();
    expect(await page.locator('.log .event').count()).toBe(1);
    expect(there.complaints).toEqual([]);
  });
});

describe('page: left open all day', () => {
  it('does no layout for readings that say nothing new', async () => {
    await using there = await openPage(browser, 'fine');
    const { page, server } = there;
    const { state } = loadState('fine', Date.now());
    // The clock of the page stands still: what is left is what readings alone cause.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.locator('.model').first().waitFor();
    const layouts = await layoutCounter(there);
    for (let tick = 1; tick <= 40; tick += 1) {
      server.sendState({
        ...state,
        revision: state.revision + tick,
        devices: state.devices.map((device) => ({
          ...device,
          busyPercent: tick,
          sampledAt: new Date().toISOString(),
        })),
      });
      // A frame each: many in one frame would be laid out once at most.
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    server.sendEvent({ id: 9002, at: new Date().toISOString(), kind: 'woke', reason: 'Awake.', numbers: {} });
    await page.locator('[data-event="9002"]').waitFor();
    // The event's row is laid out, and Playwright looks for it; forty readings are not.
    const done = await layouts();
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(12);
    expect(there.complaints).toEqual([]);
  });
});
