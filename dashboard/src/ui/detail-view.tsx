/** Page of one object, whose id is in the address. Covers loading, failure and "not found". */
import { Anchor } from "@mantine/core";
import type { ComponentType, ReactNode } from "react";
import { Link } from "react-router";
import type { Answer } from "../client/answer.js";
import { Page, type PageProps } from "./page.js";
import { Empty, Loading, QueryView } from "./states.js";

export interface DetailViewProps<Data extends object> {
  readonly answer: Answer<Data>;
  /** For example "key". */
  readonly name: string;
  /** Breadcrumbs. The last one leads to the list of all objects. */
  readonly above: NonNullable<PageProps["above"]>;
  /** Possible reason why the object was not found. */
  readonly why: string;
  /** Label of the link to the list, such as "All keys". */
  readonly all: string;
  readonly Frame?: ComponentType<PageProps>;
  /** Renders the page. Null or false: the object does not exist. */
  readonly children: (data: Data) => ReactNode;
}

export function DetailView<Data extends object>({ answer, name, above, why, all, Frame = Page, children }: DetailViewProps<Data>) {
  const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  return (
    <QueryView
      answer={answer}
      frame={(content) => (
        <Frame title={title} above={above}>
          {content}
        </Frame>
      )}
      loading={<Loading rows={4} height={72} />}
    >
      {(data) =>
        children(data) || (
          <Frame title={`${title} not found`} above={above}>
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
