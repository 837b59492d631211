import { breaks, type FieldError, notSupported, qualifiedName } from '@wheelhouse/machinery';

/** How the holder of a Lease is chosen among its candidates, by the release each acts as. */
export const oldestEmulationVersion = 'OldestEmulationVersion';

/** Judges a strategy of a Lease or a LeaseCandidate at `path`: a known one, or a qualified name. */
export function validateLeaseStrategy(strategy: string, path: string): FieldError[] {
  // Upstream names the member within itself.
  const field = `${path}.strategy`;
  if (strategy.includes('/')) return breaks(field, strategy, qualifiedName);
  if (strategy === oldestEmulationVersion) return [];
  return [notSupported(field, strategy, [oldestEmulationVersion])];
}
