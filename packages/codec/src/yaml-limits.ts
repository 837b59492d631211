/** Bounds on what one YAML text may cost. */
export interface YamlLimits {
  /** Values altogether, containers and the copies that aliases make among them. */
  readonly valuesMax: number;
  /** Whether the value is still wanted: asked between slices; decoding ends where it is not. */
  readonly isWanted?: () => boolean;
}
