/** The distribution's Chromium, driven by Playwright; with no traffic of its own. */
import { type Browser, chromium } from 'playwright-core';
import { findChromium } from '../../build/setup/chromium.mjs';

export async function launchBrowser(): Promise<Browser> {
  const executablePath = findChromium(process.env);
  if (executablePath === null) {
    throw new Error(
      'No Chromium found: `npm test` installs it, or says how; LANDLORD_CHROMIUM names another.',
    );
  }
  return await chromium.launch({
    executablePath,
    headless: true,
    args: [
      // The tests run as root in containers, where Chromium's sandbox can not be set up; they load this page only.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--no-first-run',
    ],
  });
}
