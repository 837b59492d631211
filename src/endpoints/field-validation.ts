import type { FieldValidation } from '../request/options.ts';
import type { ApiCall } from './call.ts';

/** Unknown and duplicate fields found in a body, each once, in the order found. */
export class Complaints {
  readonly #texts = new Set<string>();
  readonly #repeated: string[] = [];

  unknown(path: string): void {
    this.#texts.add(`unknown field ${JSON.stringify(path)}`);
  }

  /** @param prefix says whose field it is, where that is not the object (`json patch `) */
  duplicate(path: string, prefix = ''): void {
    this.#texts.add(`${prefix}duplicate field ${JSON.stringify(path)}`);
  }

  /** Lines in which a YAML decoder tells of keys given twice. */
  repeated(lines: readonly string[] = []): void {
    this.#repeated.push(...lines);
  }

  /** One text a complaint, for warnings. */
  get texts(): readonly string[] {
    return [...this.#repeated, ...this.#texts];
  }

  /** The text of a strict refusal: all complaints, as upstream joins them. */
  get strictText(): string {
    const lines = this.#repeated.map((line) => `\n  ${line}`).join('');
    const ofYaml = lines === '' ? [] : [`yaml: unmarshal errors:${lines}`];
    return `strict decoding error: ${[...ofYaml, ...this.#texts].join(', ')}`;
  }
}

/** `Ignore` drops complaints, `Warn` gives a header for each, `Strict` refuses (FV-2). */
export function reportComplaints(
  call: Pick<ApiCall, 'warnings'>,
  options: {
    complaints: Complaints;
    fieldValidation: FieldValidation;
    fail: (message: string) => Error;
  },
): void {
  const { texts, strictText } = options.complaints;
  if (texts.length === 0 || options.fieldValidation === 'Ignore') return;
  if (options.fieldValidation === 'Strict') throw options.fail(strictText);
  for (const text of texts) if (!call.warnings.includes(text)) call.warnings.push(text);
}
