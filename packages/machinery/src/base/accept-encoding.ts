/** Whether an `Accept-Encoding` names a coding, in lower case, with a weight other than 0. */
export function takesCoding(accepted: string, wanted: string): boolean {
  return accepted.split(',').some((one) => {
    const [coding = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase());
    return coding === wanted && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
