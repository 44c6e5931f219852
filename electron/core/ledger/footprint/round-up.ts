/** The next multiple of `step`. */
export function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}
