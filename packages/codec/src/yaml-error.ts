import { objectCharactersMax, yamlLinesMax, yamlValuesMax } from './json-limits.ts';

/** Limits on decoding a YAML text. */
export interface YamlLimits {
  /** Maximum number of values, including containers and copies by aliases. */
  readonly valuesMax: number;
  /** Maximum number of line ends; unlimited when absent. */
  readonly linesMax?: number;
  /** Maximum number of characters of names and texts, copies included; unlimited when absent. */
  readonly charactersMax?: number;
  /** Returns whether the result is still needed; otherwise, decoding stops at its next pause. */
  readonly isWanted?: () => boolean;
  /** `first`: the text after the first document is not read. Absent: there must be none. */
  readonly documents?: 'first';
}

/** The limits of the body of a request. */
export const yamlBodyLimits = {
  valuesMax: yamlValuesMax,
  linesMax: yamlLinesMax,
  charactersMax: objectCharactersMax,
  documents: 'first',
} as const;

/** Thrown for malformed or excessive YAML, with the message of kube-apiserver's decoder. */
export class YamlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'YamlError';
  }
}
