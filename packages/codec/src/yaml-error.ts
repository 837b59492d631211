/** Limits on decoding a YAML text. */
export interface YamlLimits {
  /** Maximum number of values, including containers and copies by aliases. */
  readonly valuesMax: number;
  /** Whether the result is still needed; called between slices, and decoding stops if not. */
  readonly isWanted?: () => boolean;
  /** `first`: the text after the first document is not read. Absent: there must be none. */
  readonly documents?: 'first';
}

/**
 * Malformed or excessive YAML. The message names the line, like that of kube-apiserver's decoder.
 */
export class YamlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'YamlError';
  }
}
