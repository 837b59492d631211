/** `metav1.Time` as the API writes it: RFC 3339 in UTC, whole seconds. `ms` since the epoch. */
export function formatTime(ms: number): string {
  return `${new Date(Math.floor(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}
