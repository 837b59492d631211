/** Why a patch cannot be done; endpoints turn the kind into 400, 422 or 413. */
export class PatchError extends Error {
  readonly kind: 'malformed' | 'unprocessable' | 'too-many';

  constructor(kind: PatchError['kind'], message: string) {
    super(message);
    this.name = 'PatchError';
    this.kind = kind;
  }
}
