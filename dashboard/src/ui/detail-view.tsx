/** A page of one thing, which the address names by its id: while it comes, when it does not, and when there is none. */
import { Anchor } from "@mantine/core";
import type { ComponentType, ReactNode } from "react";
import { Link } from "react-router";
import type { Answer } from "../client/answer.js";
import { Page, type PageProps } from "./page.js";
import { Empty, Loading, QueryView } from "./states.js";

export interface DetailViewProps<Data extends object> {
  readonly answer: Answer<Data>;
  /** Such as "key". */
  readonly name: string;
  /** The pages above it, of which the last is the list of all. */
  readonly above: NonNullable<PageProps["above"]>;
  /** Why there may be none, and what leads to the list, such as "All keys". */
  readonly why: string;
  readonly all: string;
  readonly Frame?: ComponentType<PageProps>;
  /** Its page; null or false: the id is of nothing. */
  readonly children: (data: Data) => ReactNode;
}

export function DetailView<Data extends object>({ answer, name, above, why, all, Frame = Page, children }: DetailViewProps<Data>) {
  return (
    <QueryView
      answer={answer}
      frame={(shown) => (
        <Frame title={`${name.charAt(0).toUpperCase()}${name.slice(1)}`} above={above}>
          {shown}
        </Frame>
      )}
      loading={<Loading rows={4} height={72} />}
    >
      {(data) =>
        children(data) || (
          <Frame title={`There is no such ${name}`} above={above}>
            <Empty
              title={why}
              action={
                <Anchor component={Link} to={above.at(-1)?.to ?? ""}>
                  {all}
                </Anchor>
              }
            />
          </Frame>
        )
      }
    </QueryView>
  );
}
