import { createHash } from 'node:crypto';
import type { LandlordEvent } from '../../../shared/events.ts';
import { formatBytes } from '../../../shared/format.ts';
import type { DeviceState, LandlordState, ModelState } from '../../../shared/state.ts';

/** What the server shows where the window's page has not been built: the same facts, without scripts. */

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; vertical-align: top; border-bottom: 1px solid #8884; }
td.figure { text-align: right; } td.figure, time { white-space: nowrap; }
meter { width: 100%; height: 1rem; } .quiet { opacity: .7; }
`;

/** For the Content-Security-Policy: only this style sheet is let in. */
export const PLAIN_STYLE_HASH = `sha256-${createHash('sha256').update(STYLE).digest('base64')}`;

/** The page with what stands now; it loads itself anew every 5 s. */
export function plainPage(state: LandlordState, events: readonly LandlordEvent[]): string {
  return htmlPage(
    'VRAM Landlord',
    `<p class="quiet">The full page is not built; this plain one shows the same figures. <code>npm start</code> builds it.</p>
${state.notices.map((notice) => `<p><strong>${escapeHtml(notice.text)}</strong></p>`).join('\n')}
${state.devices.map((device) => deviceSection(device, state)).join('\n')}
<h2>Models</h2>
${table(['model', 'status', 'memory', ''], state.models.map(modelRow), 'No models are known yet.')}
<h2>Latest events</h2>
${table(['when', 'what', 'why'], events.toReversed().map(eventRow), 'Nothing has happened yet.')}`,
    '<meta http-equiv="refresh" content="5">',
  );
}

/** The answer to a browser that is not let in: how to open the page. */
export function lockedPage(): string {
  return htmlPage(
    'VRAM Landlord is locked',
    '<p>This page opens with a one-time address: run <code>npx landlord open</code> in the project’s folder, or follow the address that <code>landlord serve</code> printed.</p>',
  );
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

function deviceSection(device: DeviceState, state: LandlordState): string {
  const holders = state.tenants.filter((tenant) => tenant.deviceId === device.id);
  const meter =
    device.usedBytes === null || device.totalBytes === null
      ? ''
      : `<meter max="${device.totalBytes}" value="${device.usedBytes}"></meter>`;
  const facts = [
    `${formatBytes(device.usedBytes)} of ${formatBytes(device.totalBytes)} used`,
    `${formatBytes(device.freeBytes)} free`,
    `floor ${formatBytes(device.floorBytes)}`,
    `cap ${formatBytes(device.capBytes)}`,
    device.health,
  ].join(' · ');
  return `<h2>${escapeHtml(device.name)}</h2>
${meter}
<p>${escapeHtml(facts)}</p>
${device.notes.map((note) => `<p class="quiet">${escapeHtml(note)}</p>`).join('\n')}
${table(
  ['who', 'kind', 'memory'],
  holders.map(
    (tenant) =>
      `<td>${escapeHtml(tenant.name)}</td><td>${escapeHtml(tenant.kind)}</td>${figure(tenant.measuredBytes ?? tenant.predictedBytes)}`,
  ),
  'Nobody is known to hold memory here.',
)}`;
}

function modelRow(model: ModelState): string {
  const marks = [
    model.busy === true ? 'busy' : '',
    model.pinned ? 'pinned' : '',
    model.guarded === 'observe' ? 'observed' : '',
    model.lastEviction === null ? '' : model.lastEviction.reason,
  ].filter((mark) => mark !== '');
  return `<td>${escapeHtml(model.id)}</td><td>${escapeHtml(model.status)}</td>${figure(model.measuredBytes ?? model.predictedBytes)}<td>${escapeHtml(marks.join(', '))}</td>`;
}

function eventRow(event: LandlordEvent): string {
  return `<td><time>${escapeHtml(event.at)}</time></td><td>${escapeHtml(event.kind)}</td><td>${escapeHtml(event.reason)}</td>`;
}

function figure(bytes: number | null): string {
  return `<td class="figure">${escapeHtml(formatBytes(bytes))}</td>`;
}

function table(head: readonly string[], rows: readonly string[], empty: string): string {
  if (rows.length === 0) return `<p class="quiet">${escapeHtml(empty)}</p>`;
  const header = head.map((name) => `<th>${escapeHtml(name)}</th>`).join('');
  return `<table><thead><tr>${header}</tr></thead><tbody>${rows.map((row) => `<tr>${row}</tr>`).join('\n')}</tbody></table>`;
}

function htmlPage(title: string, body: string, head = ''): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">${head}
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>
<body><h1>${escapeHtml(title)}</h1>
${body}
</body></html>
`;
}
