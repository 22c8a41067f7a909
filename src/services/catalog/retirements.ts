/** When models are retired (docs/spec/models.md#retirement): as the operator states, or as the upstreams of all routes of a model state. */
import type { Model } from "./model.js";

/** Dates by the ids of models; null: the model is not retired. */
export type StatedRetirements = ReadonlyMap<string, Date | null>;

export class Retirements {
  constructor(
    private readonly stated: StatedRetirements,
    /** By upstream, and by its names of models. */
    private readonly read: ReadonlyMap<string, ReadonlyMap<string, Date>> = new Map(),
  ) {}

  with(upstreamId: string, dates: ReadonlyMap<string, Date>): Retirements {
    return new Retirements(this.stated, new Map(this.read).set(upstreamId, dates));
  }

  /** A model with its date: the operator's, else the one of its source, else the latest of its routes when each has one. */
  applied(model: Model): Model {
    const stated = this.stated.get(model.id);
    const retiresAt = stated === undefined ? (model.retiresAt ?? this.latestOf(model)) : stated;
    return retiresAt?.getTime() === model.retiresAt?.getTime() ? model : { ...model, retiresAt };
  }

  private latestOf({ routes }: Model): Date | null {
    let latest: Date | null = null;
    for (const { upstreamId, upstreamModel } of routes) {
      const date = this.read.get(upstreamId)?.get(upstreamModel);
      if (date === undefined) return null;
      if (latest === null || date > latest) latest = date;
    }
    return latest;
  }
}
