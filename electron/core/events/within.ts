/** The promise's value, or `late` when it takes longer. */
export function within<T, Late>(promise: Promise<T>, limitMs: number, late: Late): Promise<T | Late> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(late), limitMs);
    void promise.then((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
