/** `ENOSPC` and such of what the file system threw; null for anything else. */
export function errnoOf(thrown: unknown): string | null {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : null;
}
