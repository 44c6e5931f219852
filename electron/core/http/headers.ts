/** On every answer: nothing sniffs its type, frames it, or learns where it came from. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/**
 * The page runs its own scripts and styles and talks to its own server, and nothing else.
 * `styleHash` allows one inline style sheet, `sha256-…` (CSP level 3, §2.3.1).
 */
export function contentSecurityPolicy(styleHash: string | null): string {
  const style = styleHash === null ? "'self'" : `'${styleHash}'`;
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${style}`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
