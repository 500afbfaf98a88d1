from anabranch.plan.explanation import Explanation
def draw_svg(told: Explanation) -> str:
    return ""
