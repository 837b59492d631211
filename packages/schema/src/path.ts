/** Field paths as upstream writes them; the empty string is the object itself. */

/** `spec` and `replicas` -> `spec.replicas`. */
export function childPath(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`;
}

/** `spec.items` and 3 -> `spec.items[3]`. */
export function indexPath(parent: string, index: number): string {
  return `${parent}[${index}]`;
}

/** `metadata.labels` and `a.b` -> `metadata.labels[a.b]`: a member of a map. */
export function keyPath(parent: string, key: string): string {
  return `${parent}[${key}]`;
}

/** Builds a path from names and indexes: `pathOf('spec', 'items', 3, 'name')`. */
export function pathOf(...steps: readonly (string | number)[]): string {
  let path = '';
  for (const step of steps) {
    path = typeof step === 'number' ? indexPath(path, step) : childPath(path, step);
  }
  return path;
}
