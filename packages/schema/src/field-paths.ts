/** Most paths kept: more than an answer lists, since what is kept is put in order first. */
const pathsMax = 1000;
const charactersMax = 1024 * 1024;

/**
 * Paths of fields that something is wrong with. Keeps the first of them and counts the rest, so that
 * a body of nothing but unknown fields with long names costs no more memory than itself.
 */
export class FoundPaths {
  #paths: string[] = [];
  #characters = 0;
  #omitted = 0;

  /** Whether further paths are only counted: then `omit` saves making them. */
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

  /** Counts paths that were never made. */
  omit(count: number): void {
    this.#omitted += count;
  }

  /** Adds what another collection has. */
  addAll(other: FoundPaths): void {
    for (const path of other.paths) this.add(path);
    this.#omitted += other.omitted;
  }

  /** Adds what was found in the member at `parent`. */
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

  /** How many were found. */
  get count(): number {
    return this.#paths.length + this.#omitted;
  }

  /** Forgets all that was found since there were `count`. */
  rewind(count: number): void {
    if (count >= this.count) return;
    this.#omitted = Math.max(0, count - this.#paths.length);
    for (const path of this.#paths.slice(count)) this.#characters -= path.length;
    this.#paths.length = Math.min(this.#paths.length, count);
  }

  /** Puts the kept paths in order: by code units unless told otherwise. */
  sort(compare?: (one: string, other: string) => number): this {
    this.#paths.sort(compare);
    return this;
  }
}
