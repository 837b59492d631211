import { longerPath } from '@wheelhouse/machinery';

/** Maximum number of stored paths: more than a response lists, because they are sorted first. */
const pathsMax = 1000;
const charactersMax = 1024 * 1024;

/**
 * A bounded list of field paths. It stores the first ones and counts the rest, so that a body of
 * unknown fields with long names does not multiply its memory.
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

  /** Adds a path, or counts it if the list is full. */
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

  /** The stored paths. */
  get paths(): readonly string[] {
    return this.#paths;
  }

  /** The number of paths that are only counted. */
  get omitted(): number {
    return this.#omitted;
  }

  /** The number of all paths. */
  get count(): number {
    return this.#paths.length + this.#omitted;
  }

  /** Removes the paths that were added after the first `count`. */
  rewind(count: number): void {
    if (count >= this.count) return;
    this.#omitted = Math.max(0, count - this.#paths.length);
    for (const path of this.#paths.slice(count)) this.#characters -= path.length;
    this.#paths.length = Math.min(this.#paths.length, count);
  }

  /** Sorts the stored paths, by code units by default. */
  sort(compare?: (left: string, right: string) => number): this {
    this.#paths.sort(compare);
    return this;
  }
}

/**
 * Returns the path of a member in kube-apiserver's notation: `spec.replicas`.
 * @param parent the path of the object; empty for the root
 */
export function childPath(parent: string, name: string): string {
  return longerPath(parent, parent === '' ? name : `.${name}`);
}

/** Returns the path of an item of a list: `spec.items[3]`. */
export function indexPath(parent: string, index: number): string {
  return longerPath(parent, `[${index}]`);
}

/** Returns the path of a member of a map: `metadata.labels[a.b]`. */
export function keyPath(parent: string, key: string): string {
  return longerPath(parent, `[${key}]`);
}
