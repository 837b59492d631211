/** Why a text is not JSON, or too much of it; the message is what upstream's decoder says. */
export class JsonError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'JsonError';
  }
}
