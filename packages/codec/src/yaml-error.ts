/** Why a text is not YAML, or too much of it; the message names the line, as upstream's decoder does. */
export class YamlError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'YamlError';
  }
}
