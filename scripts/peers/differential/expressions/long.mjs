// Expressions that are long or deep, around the limits of the parser.

const times = (text, count) => text.repeat(count);
const joined = (text, separator, count) =>
  Array.from({ length: count }, () => text).join(separator);

/** Forms by how often they nest or repeat a part. */
const forms = [
  (count) => `${times('(', count)}1${times(')', count)}`,
  (count) => `${times('[', count)}${times(']', count)}`,
  (count) => `${times('{"a": ', count)}1${times('}', count)}`,
  (count) => `${times('!', count)}true`,
  (count) => `${times('!(', count)}true${times(')', count)}`,
  (count) => `${times('-', count)}self.i`,
  (count) => `${times('true ? 1 : ', count)}1`,
  (count) => `${times('dyn(', count)}1${times(')', count)}`,
  (count) => `self.s${times('.trim()', count)}`,
  (count) => `self.p${times('.a', count)}`,
  (count) => `self.l${times('[0]', count)}`,
  (count) => `dyn([])${times('[0]', count)}`,
  (count) => `${times('[1].map(x, ', count)}1${times(')', count)}`,
  (count) => `${times('[1].all(x, ', count)}true${times(')', count)}`,
  (count) => joined('1', ' + ', count),
  (count) => joined('self.i', ' * ', count),
  (count) => joined('self.s', ' + ', count),
  (count) => joined('true', ' && ', count),
  (count) => joined('self.b', ' || ', count),
  (count) => `[${joined('1', ', ', count)}].size()`,
  (count) => `"%s".format([[${joined('self.i', ', ', count)}]])`,
  (count) => `{${Array.from({ length: count }, (_, at) => `"k${at}": 1`).join(', ')}}.size()`,
  (count) => `"${times('x', count * 30)}".size()`,
  (count) => `self.s == "${times('é', count * 30)}"`,
];
const counts = [
  ...[2, 5, 9, 12, 15, 20, 24, 30, 31, 32, 33, 40, 48, 49, 50, 60, 62, 63, 64, 80, 100, 120, 124],
  ...[125, 126, 150, 200, 240, 245, 248, 249, 250, 251, 252, 255, 260, 300, 500, 900, 2_000, 4_000],
];

/** A long or deep expression. */
export const longExpression = ({ pick }) => pick(forms)(pick(counts));
