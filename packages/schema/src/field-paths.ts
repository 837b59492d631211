/** Maximum number of kept paths: more than a response lists, because they are sorted first. */
const pathsMax = 1000;
const charactersMax = 1024 * 1024;

/**
 * Paths of faulty fields. Keeps the first ones and counts the rest, so that a body full of unknown
 * fields with long names does not multiply its memory.
 */
export class FoundPaths {
  #paths: string[] = [];
  #characters = 0;
  #omitted = 0;

  /**
   * Whether further paths are only counted, so that callers can use `omit` instead of building
   * them.
   */
  get isFull(): boolean {
    return this.#paths.length >= pathsMax || this.#characters >= charactersMax;
  }

  add(path: string): void {
    if (this.isFull) {
      this.#omitted += 1;
      return;
    }
    this.#paths.push(path);
    this.#characters += path.length;
  }

  /** Counts paths that were not built. */
  omit(count: number): void {
    this.#omitted += count;
  }

  /** Adds the paths of another collection. */
  addAll(other: FoundPaths): void {
    for (const path of other.paths) this.add(path);
    this.#omitted += other.omitted;
  }

  /** Adds the paths found in the member at `parent`. */
  addUnder(parent: string, other: FoundPaths): void {
    for (const path of other.paths) this.add(`${parent}.${path}`);
    this.#omitted += other.omitted;
  }

  get paths(): readonly string[] {
    return this.#paths;
  }

  get omitted(): number {
    return this.#omitted;
  }

  /** Number of paths found. */
  get count(): number {
    return this.#paths.length + this.#omitted;
  }

  /** Drops the paths found since there were `count`. */
  rewind(count: number): void {
    if (count >= this.count) return;
    this.#omitted = Math.max(0, count - this.#paths.length);
    for (const path of this.#paths.slice(count)) this.#characters -= path.length;
    this.#paths.length = Math.min(this.#paths.length, count);
  }

  /** Sorts the kept paths, by code units by default. */
  sort(compare?: (one: string, other: string) => number): this {
    this.#paths.sort(compare);
    return this;
  }
}

/** Field paths in kube-apiserver's notation; the empty string is the object itself. */

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
